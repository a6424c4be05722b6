"""Pages as documentation sites have them, computed from a seed and a number: the same numbers give the same bytes.

Sizes are log-normal, as on the real web: most pages are small, a few are long. Text has the word frequencies of
natural language (Zipf), because compressors and parsers notice the difference. Links, tags and the share of text that
a reader sees (a third) are as many as in packages of Debian's documentation. Knows nothing of files and servers.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MEAN_BYTES = 43_000
SMALLEST_BYTES, LARGEST_BYTES = 6_000, 400_000
NEXT_ROUND = "NEXT-ROUND"  # in the link from one round of an endless site to the next; the server fills it in

_SIGMA = 0.8  # of the logarithm of the size; with it the largest of 3,000 pages are about ten times the mean
_MU = math.log(0.95 * MEAN_BYTES) - _SIGMA**2 / 2  # the last block of a page reaches beyond what was drawn
_NAVIGATION = 18  # pages linked from the top and from the side of every page
_CHILDREN = 8
_VOCABULARY, _STREAM = 8_000, 150_000  # different words; words of running text that paragraphs are cut from
_SYLLABLES = ("ka", "ter", "mo", "lin", "es", "ra", "po", "du", "vi", "nor", "ga", "sé", "tu", "ha", "bel", "žu")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page is: page `number` of a host. Page 0 is its start page."""

    host: int
    number: int

    @property
    def path(self) -> str:
        return f"part{self.number % 12}/page-{self.number}.html" if self.number else "index.html"


class Author:
    """Writes the pages of a site that has `counts[h]` pages on host `h`, reached as `origins[h]`."""

    def __init__(self, seed: int, counts: Sequence[int], origins: Sequence[str], is_endless: bool = False) -> None:
        self._seed = seed
        self._counts = counts
        self._origins = origins
        self._is_endless = is_endless
        self._stream = _running_text(random.Random(f"{seed} words"))

    def page(self, place: Place) -> bytes:
        """The page at `place`, complete."""
        chance = random.Random(f"{self._seed} {place.host} {place.number}")
        size = min(max(chance.lognormvariate(_MU, _SIGMA), SMALLEST_BYTES), LARGEST_BYTES)
        head, foot = self._head(place, chance), self._foot(place, chance)
        blocks = self._body(place, chance, round(size) - len(head.encode()) - len(foot.encode()))
        return "\n".join((head, *blocks, foot)).encode()

    # --- links -------------------------------------------------------------------------------------------------

    def _link(self, place: Place, number: int, text: str, fragment: str = "") -> str:
        """A link within the host, written relative to the page that it is on."""
        up = "../" if "/" in place.path else ""
        return f'<a class="reference internal" href="{up}{Place(place.host, number).path}{fragment}">{text}</a>'

    def _inline_link(self, place: Place, chance: random.Random) -> str:
        text, kind = self._words(chance, chance.randint(1, 4)), chance.random()
        fragment = f"#section-{chance.randint(1, 9)}" if chance.random() < 0.5 else ""
        if kind < 0.06:
            host = chance.randrange(len(self._counts))
            other = Place(host, chance.randrange(self._counts[host]))
            return f'<a class="reference external" href="{self._origins[host]}/{other.path}{fragment}">{text}</a>'
        if kind < 0.10:  # outside of the crawl
            return f'<a href="http://www{chance.randint(1, 500)}.example.org/{chance.randint(1, 99)}">{text}</a>'
        if kind < 0.20:
            return f'<a class="headerlink" href="#section-{chance.randint(1, 9)}">{text}</a>'
        return self._link(place, chance.randrange(self._counts[place.host]), text, fragment)

    def _navigation(self, place: Place) -> str:
        numbers = range(min(_NAVIGATION, self._counts[place.host]))
        return "".join(f"<li>{self._link(place, number, f'Chapter {number}')}</li>\n" for number in numbers)

    def _children(self, place: Place) -> list[int]:
        """Through these links every page of a host is reached from its start page."""
        first = place.number * _CHILDREN + 1
        return list(range(first, min(first + _CHILDREN, self._counts[place.host])))

    # --- parts of a page ---------------------------------------------------------------------------------------

    def _head(self, place: Place, chance: random.Random) -> str:
        title, up = self._words(chance, 5).capitalize(), "../" if "/" in place.path else ""
        return (
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
            f'<meta name="description" content="{self._words(chance, 18)}">\n'
            f'<meta name="keywords" content="{", ".join(self._words(chance, 6).split())}">\n'
            f'<link rel="stylesheet" href="{up}static/style.css" type="text/css">\n'
            f'<script src="{up}static/search.js"></script>\n</head>\n<body>\n'
            f'<nav class="related"><ul>\n{self._navigation(place)}</ul></nav>\n<main>\n<h1>{title}</h1>\n'
        )

    def _foot(self, place: Place, chance: random.Random) -> str:
        children = "".join(f"<li>{self._link(place, n, self._words(chance, 3))}</li>\n" for n in self._children(place))
        onward = f'<p><a href="/r{NEXT_ROUND}/index.html">onward</a></p>\n' if self._goes_on(place) else ""
        return (
            f'<h2>Contents</h2>\n<ul class="toctree">\n{children}</ul>\n{onward}</main>\n'
            f"<aside><ul>\n{self._navigation(place)}</ul></aside>\n<footer>{self._words(chance, 12)}</footer>\n"
            "</body>\n</html>\n"
        )

    def _goes_on(self, place: Place) -> bool:
        # One link in each round: more, and the pages waiting to be crawled would grow without bound.
        return self._is_endless and place.number == 0

    def _body(self, place: Place, chance: random.Random, length: int) -> list[str]:
        """Blocks until `length` bytes are reached, with the links spread over them."""
        kinds: Sequence[Callable[[Place, random.Random, int], str]] = (self._paragraph, self._table, self._code)
        links = chance.randint(30, 150)
        blocks: list[str] = []
        written = linked = 0
        while written < length:
            due = round(links * (written + 500) / length) - linked
            block = chance.choices(kinds, (9, 1, 4))[0](place, chance, due)
            if len(blocks) % 6 == 0:
                section = len(blocks) // 6 + 1
                block = f'<h2 id="section-{section}">{self._words(chance, 4).capitalize()}</h2>\n{block}'
            blocks.append(block)
            written += len(block.encode())
            linked += block.count("<a ")
        return blocks

    def _paragraph(self, place: Place, chance: random.Random, links: int) -> str:
        parts = [self._words(chance, chance.randint(8, 40)).capitalize()]
        for _ in range(links):
            parts += [self._inline_link(place, chance), self._words(chance, chance.randint(4, 12)), self._name(chance)]
        for _ in range(chance.randint(1, 4)):
            parts += [self._name(chance), f"<em>{self._words(chance, 2)}</em>", self._words(chance, 5)]
        return f'<p id="p{chance.randrange(10**6)}">{" ".join(parts)}.</p>'

    def _name(self, chance: random.Random) -> str:
        inner = f'<span class="pre">{self._words(chance, 1)}()</span>'
        return f'<code class="xref py py-func docutils literal notranslate">{inner}</code>'

    def _table(self, place: Place, chance: random.Random, links: int) -> str:
        cells = chance.randint(2, 5)
        rows = [
            "<tr>" + "".join(f"<td>{self._words(chance, chance.randint(1, 8))}</td>" for _ in range(cells)) + "</tr>"
            for _ in range(chance.randint(4, 20))
        ]
        rows.append(f'<tr><td colspan="{cells}">{self._inline_link(place, chance)}</td></tr>')
        return '<table class="docutils"><tbody>\n' + "\n".join(rows) + "\n</tbody></table>"

    def _code(self, place: Place, chance: random.Random, links: int) -> str:
        names = self._words(chance, chance.randint(20, 90)).split()
        lines = [
            f'<span class="n">{name}</span> <span class="o">=</span> <span class="mi">{chance.randint(0, 4096)}</span>'
            f'  <span class="c1"># {self._words(chance, 4)}</span>'
            for name in names[::3]
        ]
        return '<div class="highlight"><pre>' + "\n".join(lines) + "\n</pre></div>"

    def _words(self, chance: random.Random, number: int) -> str:
        start = chance.randrange(_STREAM - number)
        return " ".join(self._stream[start : start + number])


def _running_text(chance: random.Random) -> list[str]:
    words = ["".join(chance.choices(_SYLLABLES, k=1 + min(4, rank.bit_length() // 3))) for rank in range(_VOCABULARY)]
    return chance.choices(words, [1 / (rank + 2.7) for rank in range(_VOCABULARY)], k=_STREAM)
