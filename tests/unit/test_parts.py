"""The parts of a crawl: one that does not start says why, and nobody waits for one that is not needed any more."""

from collections.abc import Callable
from pathlib import Path

import pytest

from onehost.parts import Part, PartFailed

Make = Callable[[str], Part]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    log = tmp_path / "part.log"
    log.write_text("words of an earlier run\n")

    def make(program: str) -> Part:
        (tmp_path / "odd_part.py").write_text(program)
        part = Part("odd", "odd_part", "is ready", log)
        part.launch(())
        return part

    return make


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit(3)", "it ended with exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "it was ended by signal 9"),
        ("import sys; sys.exit('no space left')", "no space left"),
        ("print('one'); print('two')", "one\ntwo"),
    ],
)
def test_a_part_that_does_not_start_says_why(made: Make, program: str, said: str) -> None:
    with pytest.raises(PartFailed) as caught:
        made(program).wait_until_ready()
    assert str(caught.value) == f"odd did not start:\n{said}"


def test_a_part_that_is_ready_is_not_waited_for(made: Make, tmp_path: Path) -> None:
    part = made("import time; print('it is ready', flush=True); print('more', flush=True); time.sleep(600)")
    part.wait_until_ready()
    part.stop()
    assert "it is ready\n" in (tmp_path / "part.log").read_text()


def test_nobody_waits_for_a_part_that_is_not_needed_any_more(made: Make) -> None:
    part = made("import time; time.sleep(600)")
    part.wait_until_ready(lambda: True)
    assert not part.keep_alive(), "it still runs, and nobody has waited for its end"
    part.stop()
