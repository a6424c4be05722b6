"""The filters in config/filters, as a user gets them."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from client.filtering.filters import Filters, check
from client.results import FetchResult
from common.errors import ConfigError
from common.wire import Outcome, UrlTask
from tests.languages import PARAGRAPHS
from tests.mining import mine
from tests.packages import debian_pages
from tests.processes import ROOT
from tests.unit.test_miner import SETTINGS

SHIPPED = ROOT / "config" / "filters"
APACHE = debian_pages("apache2-doc")
Keeps = Callable[..., bool]


def _copy(name: str, folder: Path, text: str | None = None) -> Path:
    """One of the filters with its own configuration file, or with another."""
    for path in SHIPPED.glob(f"{name}.*"):
        shutil.copy(path, folder)
    if text is not None:
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


@contextmanager
def _using(folder: Path) -> Iterator[Keeps]:
    filters = Filters(folder, 20.0)

    def keeps(body: bytes = b"<p>x", url: str = "http://example.org/", content_type: str = "text/html") -> bool:
        fetched = FetchResult(UrlTask(url), Outcome.STORED, final_url=url, content_type=content_type, body=body)
        return filters.judge(mine(fetched, SETTINGS)).outcome is Outcome.STORED

    yield keeps
    filters.close()
    assert not any(each.troubles for each in filters._filters)


def test_all_as_they_are() -> None:
    check(SHIPPED)
    with _using(SHIPPED) as keeps:
        assert all(keeps(text.encode()) for text in PARAGRAPHS.values()), "no language is named"
        assert not keeps(url="http://ad.doubleclick.net/x")


def test_advertising(tmp_path: Path) -> None:
    listed = "\ufeff# a comment\n\nads.example.org  # their own\n.Tracker.example\r\nbücher-werbung.example\n10.1.2.3\n"
    with _using(_copy("advertising", tmp_path, listed)) as keeps:
        discarded = (
            "http://ads.example.org/", "https://ads.example.org:8443/x", "http://a.b.ads.example.org/",
            "http://tracker.example./", "http://www.tracker.example/", "http://xn--bcher-werbung-wob.example/",
            "http://10.1.2.3/",
        )  # fmt: skip
        kept = (
            "http://example.org/", "http://myads.example.org/", "http://ads.example.org.example.net/",
            "http://example.org/ads.example.org/", "http://ads.example/", "http://[::1]:8080/", "http://110.1.2.3/",
        )  # fmt: skip
        assert [url for url in discarded if keeps(url=url)] == []
        assert [url for url in kept if not keeps(url=url)] == []


def test_language(tmp_path: Path) -> None:
    with _using(_copy("language", tmp_path, "cs # Czech\n\nJA\n")) as keeps:
        kept = {code for code, text in PARAGRAPHS.items() if keeps(f"<meta charset=utf-8><p>{text}".encode())}
        assert kept == {"cs", "ja"}
        assert keeps(b"<title>About us</title><p>Just a few words in English"), "too little text"
        assert keeps(b"<pre>" + b"01 23 45 67 " * 500), "no words"
        assert keeps(PARAGRAPHS["en"].encode(), content_type="application/pdf"), "has no text that was mined"
        assert not keeps(PARAGRAPHS["en"].encode(), content_type="text/plain")
        assert not keeps(b"<html lang=cs><p>" + PARAGRAPHS["en"].encode()), "what the page claims does not count"


@pytest.mark.skipif(APACHE is None, reason="apache2-doc could not be had")
def test_language_of_real_pages(tmp_path: Path) -> None:
    """The manual of Apache in eight languages; each page says in which it really is."""
    assert APACHE is not None
    pages = [path for language in ("de", "en", "es", "fr", "ja", "ko", "tr", "zh-cn")
             for path in sorted((APACHE / "manual" / language).glob("*.html"))[:15]]  # fmt: skip
    lost, left_in = [], []
    with _using(_copy("language", tmp_path, "fr\ntr\n")) as keeps:
        for path in pages:
            body = path.read_bytes()
            language = re.search(rb'<html[^>]*\blang="(\w+)', body)
            is_wanted = bool(language and language[1] in (b"fr", b"tr"))
            if keeps(body) != is_wanted:
                (lost if is_wanted else left_in).append(path)
    assert len(pages) > 100
    assert lost == []
    assert len(left_in) <= len(pages) // 20, "those about which it is not sure"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("language", "en\n\ncz\n", r"language\.txt, line 3: 'cz' is no language"),
        ("language", "English\n", r"language\.txt, line 1: 'english' is no language"),
        ("advertising", "a.example\nhttp://b.example/\n", r"advertising\.txt, line 2: 'http://b\.example/'"),
        ("advertising", "*.example.org\n", r"line 1: '\*\.example\.org' is no domain"),
    ],
)  # fmt: skip
def test_mistakes_in_their_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    _copy(name, tmp_path, text)
    with pytest.raises(ConfigError, match=rf"{name}\.py: line \d+: ValueError: .*{message}"):
        check(tmp_path)


@pytest.mark.parametrize("name", ["advertising", "language"])
def test_without_their_files(tmp_path: Path, name: str) -> None:
    _copy(name, tmp_path)
    (tmp_path / f"{name}.txt").unlink()
    with pytest.raises(ConfigError, match=rf"{name}\.py: .*FileNotFoundError.*{name}\.txt"):
        check(tmp_path)
