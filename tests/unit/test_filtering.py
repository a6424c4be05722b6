"""Filters: loaded and asked in a process of their own, and what happens when one of them does not behave."""

import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from client.filtering.filters import Filters, check
from client.results import FetchResult, MinedPage
from common.errors import ConfigError
from common.wire import Outcome, UrlTask
from tests.integration.daemon import is_alive
from tests.mining import mine
from tests.unit.test_miner import SETTINGS
from tests.waiting import wait_until

HTML = b"<!doctype html><title>A title</title><p>Some words <a href=/next>and a link</a>"
Made = Callable[..., Filters]


def _page(path: str = "/a/b.html", body: bytes = HTML, content_type: str = "text/html") -> MinedPage:
    url = f"http://example.org{path}"
    fetched = FetchResult(
        UrlTask(url), Outcome.STORED, status=200, final_url=url, content_type=content_type, body=body, fetched_at=1.7e9
    )
    return mine(fetched, SETTINGS)


def _write(folder: Path, **sources: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(source))
    return folder


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    """Makes filters of sources; they are closed at the end."""
    all_made: list[Filters] = []

    def make(max_seconds: float = 20.0, **sources: str) -> Filters:
        all_made.append(Filters(_write(tmp_path / "filters", **sources), max_seconds))
        return all_made[-1]

    yield make
    for filters in all_made:
        filters.close()


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "client.filtering.filters")
    return caplog


def _detail(page: MinedPage) -> str:
    return "stored" if page.outcome is Outcome.STORED else f"{page.outcome}: {page.detail}"


def test_without_filters_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    filters, page, threads = Filters(), _page(), threading.active_count()
    assert filters.judge(page) is page
    filters.close()
    assert threading.active_count() == threads


def test_what_a_filter_gets(made: Made) -> None:
    filters = made(
        look="""
        def keep(page):
            assert page.url == page.meta.original_url == "http://example.org/a/Team.html?x=1", page.url
            assert page.path == "example.org+http/a/Team.html!3fx=1~1/data.html", page.path
            assert (page.title, page.text) == ("A title", "Some words and a link"), page.text
            assert list(page.links) == [("http://example.org/next", "and a link")]
            assert (page.content_type, page.meta.status, page.meta.crawl_time) == ("text/html", 200, 1.7e9)
            assert page.body.startswith(b"<!doctype") and b"<page>" in page.xml
            try:
                page.url = ""
            except AttributeError:
                return False  # proves that all of the above is true
        """
    )
    assert _detail(filters.judge(_page("/a/Team.html?x=1"))) == "unwanted: filter look"


def test_a_discarded_page_is_not_stored_but_its_links_are_known(made: Made) -> None:
    filters = made(never="def keep(page): return False")
    page = filters.judge(_page())
    assert (page.meta, page.body, page.xml, page.data_name) == (None, b"", b"", "")
    assert list(page.links) == ["http://example.org/next"]
    assert page.status == 200


def test_what_has_no_page_is_not_asked_about(made: Made) -> None:
    filters = made(never="def keep(page): return False")
    missing = MinedPage(UrlTask("http://example.org/"), Outcome.NOT_FOUND)
    assert filters.judge(missing) is missing


def test_the_first_that_discards_decides(made: Made, tmp_path: Path) -> None:
    filters = made(
        a="def keep(page): return 'a' not in page.meta.original_url[18:]",
        b="def keep(page): return 'b' not in page.meta.original_url[18:]",
        _helper="not even Python",
    )
    details = [_detail(filters.judge(_page(path))) for path in ("/x", "/b", "/ab", "/a")]
    assert details == ["stored", "unwanted: filter b", "unwanted: filter a", "unwanted: filter a"]


@pytest.mark.parametrize(("content_type", "body"), [("application/pdf", b"%PDF"), ("text/html", b"\x00\xff<p>\xd8")])
def test_any_body(made: Made, content_type: str, body: bytes) -> None:
    filters = made(text="def keep(page): return not page.body.startswith(page.body[:1]) or not page.text.isascii()")
    assert filters.judge(_page(body=body, content_type=content_type)).outcome in (Outcome.STORED, Outcome.UNWANTED)
    assert not filters._filters[0].troubles


def test_large_bodies_and_many_threads(made: Made) -> None:
    filters = made(odd="def keep(page): return len(page.body) % 2 == 0")
    pages = [_page(body=b"x" * (size << 18 | size % 2), content_type="image/png") for size in range(1, 40)]
    judged: list[MinedPage] = []
    parts = [pages[start::4] for start in range(4)]
    threads = [threading.Thread(target=lambda part=part: judged.extend(map(filters.judge, part))) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(judged) == len(pages)
    assert sum(page.outcome is Outcome.UNWANTED for page in judged) == 20


RUBBISH = {
    "raises": ("def keep(page): return 1 / 0", "raised ZeroDivisionError"),
    "leaves": ("import sys\ndef keep(page): sys.exit()", "raised SystemExit"),
    "recurses": ("def keep(page): return keep(page)", "raised RecursionError"),
    "silent": ("def keep(page): pass", "returned NoneType instead of True or False"),
    "text": ("def keep(page): return 'no'", "returned str instead of True or False"),
    "arguments": ("def keep(): return False", "raised TypeError"),
}


@pytest.mark.parametrize("name", RUBBISH)
def test_a_filter_that_makes_mistakes_has_no_say(made: Made, log: pytest.LogCaptureFixture, name: str) -> None:
    source, kind = RUBBISH[name]
    filters = made(bad=source, sound="def keep(page): return '/x/' not in page.path")
    process = None
    for _ in range(11):
        assert _detail(filters.judge(_page())) == "stored"
        process = process or filters._process
    assert _detail(filters.judge(_page("/x"))) == "unwanted: filter sound"
    assert filters._process is process, "not worth a new process"
    assert [record.message.count(f"filter bad {kind};") for record in log.records] == [1, 1], "the first, the tenth"
    filters.close()
    assert f"filter bad: 0 pages kept, 0 discarded, 12 times it {kind}" in log.messages
    assert "filter sound: 11 pages kept, 1 discarded" in log.messages


ENDINGS = {
    "exits": ("import os\ndef keep(page): os._exit(3)", "ended its process (exit code 3)"),
    "crashes": ("import ctypes\ndef keep(page): ctypes.string_at(0)", "ended its process (signal 11)"),
    "hangs": ("def keep(page):\n while True: pass", "did not answer in time"),
    # One call into C that never gives the interpreter lock back.
    "computes": ("import re\ndef keep(page): return bool(re.match('(a+)+b', 'a' * 99))", "did not answer in time"),
    "stops": ("import os, signal\ndef keep(page): os.kill(os.getpid(), signal.SIGSTOP)", "did not answer in time"),
    "talks": (
        "import os\ndef keep(page):\n for n in range(3, 300):\n  try: os.write(n, b'hello\\n')\n  except OSError: pass",
        "wrote to a connection that is not its own",
    ),
    "deaf": ("import os\ndef keep(page): os.closerange(3, 99); os.abort()", "ended its process (signal 6)"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_filter_that_costs_its_process_is_switched_off(made: Made, log: pytest.LogCaptureFixture, name: str) -> None:
    source, kind = ENDINGS[name]
    # Short only where we have to wait for it: the sound filter must answer in time on a busy machine, too.
    filters = made(1.0 if "time" in kind else 20.0, bad=source, sound="def keep(page): return '/x/' not in page.path")
    processes = []
    for path, detail in [("/1", "stored"), ("/x", "unwanted: filter sound"), ("/2", "stored"), ("/3", "stored")]:
        assert _detail(filters.judge(_page(path))) == detail
        assert filters._process is not None
        processes.append(filters._process._process.pid)
    assert len(set(processes)) == 3, "killed three times, then the filter is asked no more"
    assert [is_alive(pid) for pid in dict.fromkeys(processes)] == [False, False, True]
    assert [(record.levelname, record.message) for record in log.records] == [
        ("WARNING", f"filter bad {kind}; its page counts as kept (time 1)"),
        ("ERROR", f"filter bad is switched off: 3 times in a row it {kind}"),
    ]


def test_not_in_a_row_is_not_switched_off(made: Made, log: pytest.LogCaptureFixture) -> None:
    filters = made(bad="import os\ndef keep(page): return False if '/x/' in page.path else os._exit(1)")
    details = [_detail(filters.judge(_page(path))) for path in ("/1", "/2", "/x", "/3", "/4", "/x")]
    assert details == ["stored", "stored", "unwanted: filter bad", "stored", "stored", "unwanted: filter bad"]
    assert not [record for record in log.records if record.levelname == "ERROR"]


def test_killed_between_two_pages(made: Made, log: pytest.LogCaptureFixture) -> None:
    filters = made(never="def keep(page): return False")
    filters.judge(_page())
    assert filters._process is not None
    os.kill(filters._process._process.pid, signal.SIGKILL)
    wait_until(lambda: filters._process is None or not filters._process.is_alive, 10)
    assert _detail(filters.judge(_page())) == "unwanted: filter never"
    assert not log.records


def test_filters_that_cannot_be_started_again(made: Made, tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    filters = made(bad="import os\ndef keep(page): os._exit(1)", sound="def keep(page): return False")
    (tmp_path / "filters" / "sound.py").write_text("def keep(page): no Python any more")
    assert [_detail(filters.judge(_page())) for _ in range(4)] == ["stored"] * 4
    told = [record.message for record in log.records]
    assert len(told) == 4
    assert "SyntaxError" in told[0]
    assert told[3] == "from now on every page is kept"


def test_what_filters_print_is_no_answer(made: Made, capfd: pytest.CaptureFixture[str]) -> None:
    filters = made(
        loud="""
        print("loading")
        def keep(page):
            print('{"keep": true}', flush=True)
            return input() != "" if "/x/" in page.path else False
        """
    )
    assert _detail(filters.judge(_page())) == "unwanted: filter loud"
    assert _detail(filters.judge(_page("/x"))) == "stored"
    assert filters._filters[0].troubles == {"raised EOFError": 1}
    filters.close()
    output, errors = capfd.readouterr()
    assert output == ""
    assert '{"keep": true}' in errors


def test_setup_gets_the_folder_and_modules_can_be_shared(made: Made, tmp_path: Path) -> None:
    _write(tmp_path / "filters", _words="BAD = {'casino'}")
    filters = made(
        words="""
        from _words import BAD
        from pathlib import Path
        more = set()
        def setup(folder: Path) -> None:
            more.update((folder / "words.txt").read_text().split())
        def keep(page):
            return not (BAD | more) & set(page.text.split())
        """
    )
    (tmp_path / "filters" / "words.txt").write_text("poker\n")
    details = [_detail(filters.judge(_page(body=b"<p>a %s b" % word))) for word in (b"casino", b"poker", b"tea")]
    assert details == ["unwanted: filter words", "unwanted: filter words", "stored"]
    assert not list((tmp_path / "filters").glob("__pycache__"))


MISTAKES = {
    "syntax": ("def keep(page):\n  return (", r"bad\.py: SyntaxError: .*line 2"),
    "import": ("x = 1\nimport no_such_module", r"bad\.py: line 2: ModuleNotFoundError: .*no_such_module"),
    "nothing": ("def kept(page): return True", r"bad\.py: has no function keep\(page\)"),
    "no function": ("keep = True", r"bad\.py: has no function keep\(page\)"),
    "setup": ("def keep(page): pass\ndef setup(folder):\n  open(folder / 'x.txt')", r"bad\.py: line 3: FileNotFound"),
    "leaves": ("raise SystemExit(4)", r"bad\.py: line 1: SystemExit: 4"),
    "exits": ("import os\nos._exit(4)", r"bad\.py: ended its process \(exit code 4\)"),
    "bytes": ("\x00", r"bad\.py: (SyntaxError|ValueError): .*null bytes"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_at_the_start(tmp_path: Path, name: str) -> None:
    source, message = MISTAKES[name]
    _write(tmp_path, a_good_one="def keep(page): return True", bad=source)
    with pytest.raises(ConfigError, match=f"^filters: .*{message}"):
        check(tmp_path)


def test_a_filter_that_never_gets_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("client.filtering.process._START_SECONDS", 1.0)
    _write(tmp_path, bad="import time\ntime.sleep(600)")
    with pytest.raises(ConfigError, match=r"bad\.py: did not answer in time"):
        check(tmp_path)


def test_a_folder_without_filters(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no filter \(\*\.py\) in"):
        check(tmp_path)
    with pytest.raises(ConfigError, match="there is no folder"):
        check(tmp_path / "missing")


HOST = """
import os, sys, time
from pathlib import Path
from client.filtering.filters import Filters
from tests.unit.test_filtering import _page
filters = Filters(Path(sys.argv[1]), 60.0)
filters.judge(_page("/x"))
print(filters._process._process.pid, flush=True)
filters.judge(_page())
"""


def test_the_process_ends_with_its_parent_also_while_a_filter_hangs(tmp_path: Path) -> None:
    _write(tmp_path, bad="import re\ndef keep(page): return '/x/' in page.path or bool(re.match('(a+)+b', 'a' * 99))")
    with subprocess.Popen([sys.executable, "-c", HOST, str(tmp_path)], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        pid = int(host.stdout.readline())
        time.sleep(0.1)  # most likely it hangs by now; if not, the test is only weaker
        host.kill()
    wait_until(lambda: not is_alive(pid), 10)
