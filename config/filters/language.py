"""Keeps only pages in the languages of language.txt; without any there, all pages.

The language is told from the text, by CLD3 (the package cld3-py), not from what the page claims. A page with little
text is kept, and so is one about which CLD3 is not sure.
"""

from pathlib import Path

from gcld3 import NNetLanguageIdentifier

from client.filtering.page import Page

_MIN_LETTERS = 100
_MAX_CHARACTERS = 20_000  # more does not make it surer
_MAX_BYTES = 2_000  # that CLD3 looks at, in pieces from all over the text

# What CLD3 can tell, without the forms in Latin letters (as in ru-Latn).
_KNOWN = (
    "af am ar bg bn bs ca ceb co cs cy da de el en eo es et eu fa fi fil fr fy ga gd gl gu ha haw hi hmn hr ht hu hy "
    "id ig is it iw ja jv ka kk km kn ko ku ky la lb lo lt lv mg mi mk ml mn mr ms mt my ne nl no ny pa pl ps pt ro "
    "ru sd si sk sl sm sn so sq sr st su sv sw ta te tg th tr uk ur uz vi xh yi yo zh zu"
)
_OTHER_NAMES = {"he": "iw", "nb": "no", "nn": "no", "in": "id", "tl": "fil", "jw": "jv"}

_wanted: set[str] = set()
_identifier = NNetLanguageIdentifier(0, _MAX_BYTES)


def setup(folder: Path) -> None:
    file = folder / "language.txt"
    for number, line in enumerate(file.read_text(encoding="utf-8-sig").splitlines(), start=1):
        code = line.partition("#")[0].strip().lower()
        if not code:
            continue
        language = _OTHER_NAMES.get(code, code)
        if language not in _KNOWN.split():
            raise ValueError(f"{file.name}, line {number}: {code!r} is no language that can be told, such as en or cs")
        _wanted.add(language)


def keep(page: Page) -> bool:
    text = page.text[:_MAX_CHARACTERS]
    if not _wanted or sum(map(str.isalpha, text)) < _MIN_LETTERS:
        return True
    found = _identifier.FindLanguage(text)
    return not found.is_reliable or found.language.partition("-")[0] in _wanted
