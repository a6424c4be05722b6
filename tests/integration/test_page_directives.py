"""What pages say about themselves, with the real commands over a small web that says all of it."""

from pathlib import Path

import pytest

from tests.integration.admin import ask_admin
from tests.integration.onecommand import Crawls
from tests.unit.canned import Canned, reply, serving

pytestmark = pytest.mark.integration

FAST = ("--delay", "0", "--connections-per-host", "4")

HOME = """
<link rel=stylesheet href=style.css><img src=a.png srcset="b.png 2x" style="background: url(c.png)">
<a href=meta-nofollow></a> <a href=meta-noindex></a> <a href=meta-ours></a> <a href=meta-theirs></a>
<a href=tag-none></a> <a href=tag-noarchive></a> <a href=tag-ours></a> <a href=tag-theirs></a> <a href=report.pdf></a>
<a href=marked rel=nofollow></a>
"""
# What each says, and whether the page is kept and its link followed.
PAGES = {
    "/meta-nofollow": ("<meta name=robots content=nofollow>", "", True, False),
    "/meta-noindex": ("<meta name=robots content=noindex>", "", False, True),
    "/meta-ours": ("<meta name=Pavouk content='noarchive, nofollow'>", "", False, False),
    "/meta-theirs": ("<meta name=otherbot content=none>", "", True, True),
    "/tag-none": ("", "none", False, False),
    "/tag-noarchive": ("", "noarchive", False, True),
    "/tag-ours": ("", "pavouk: nofollow", True, False),
    "/tag-theirs": ("", "otherbot: noindex, nofollow", True, True),
}
SHOWN = {"/style.css", "/more.css", "/a.png", "/b.png", "/c.png", "/d.png"}


def _web(canned: Canned) -> None:
    canned.replies["/"] = reply(HOME.encode())
    for path, (meta, tag, _, _) in PAGES.items():
        body = f"<title>{path}</title>{meta}<a href=behind{path}>on</a>"
        canned.replies[path] = reply(body.encode(), X_Robots_Tag=tag)
        canned.replies[f"/behind{path}"] = reply(b"found")
    canned.replies["/marked"] = reply(b"found")
    canned.replies["/report.pdf"] = reply(b"%PDF", Content_Type="application/pdf", X_Robots_Tag="noindex")
    canned.replies["/style.css"] = reply(b"@import 'more.css'; a { background: url(d.png) }", Content_Type="text/css")
    canned.replies["/more.css"] = reply(b"a { color: red }", Content_Type="text/css")
    for path in ("/a.png", "/b.png", "/c.png", "/d.png"):
        canned.replies[path] = reply(b"png", Content_Type="image/png")
    canned.replies[None] = reply(b"nothing here", "404 Not Found")


def _stored(crawls: Crawls, canned: Canned) -> set[str]:
    return {url.removeprefix(canned.origin) for url in crawls.stored()}


def test_pages_are_heard(tmp_path: Path) -> None:
    crawls = Crawls(tmp_path)
    with serving() as canned:
        _web(canned)
        crawls.run(canned.url("/"), *FAST)
        kept = {path for path, (_, _, is_kept, _) in PAGES.items() if is_kept}
        behind = {f"/behind{path}" for path, (_, _, _, is_followed) in PAGES.items() if is_followed}
        assert _stored(crawls, canned) == {"/", "/marked", *kept, *behind, *SHOWN}
        assert set(canned.paths()) == {"/robots.txt", "/", "/marked", "/report.pdf", *PAGES, *behind, *SHOWN}
        explained = ask_admin(tmp_path, "explain", canned.url("/tag-noarchive"))
        assert (explained["state"], explained["reason"]) == ("excluded", "unwanted: noarchive")


def test_pages_are_not_heard_when_the_operator_says_so(tmp_path: Path) -> None:
    crawls = Crawls(tmp_path)
    with serving() as canned:
        _web(canned)
        crawls.run(canned.url("/"), *FAST, "--page-directives", "0", "--rel-nofollow", "1", "--document-save", "0")
        behind = {f"/behind{path}" for path in PAGES}
        assert _stored(crawls, canned) == {"/", *PAGES, *behind}
        assert "/marked" not in canned.paths()
        assert not SHOWN & set(canned.paths())
