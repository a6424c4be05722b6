"""A loop that survives what is raised in it: what becomes of what was in hand, the pauses, and the counts."""

import gc
import logging
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from common.loop import Caught, Loop, Trouble, read_caught


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("there are no words for it")


DISK_FULL = OSError(28, "No space left on device")
ERRORS = [DISK_FULL, MemoryError(), KeyError("a bug"), SystemExit(1), KeyboardInterrupt(), Mute()]


class Pauses(list[float]):
    """Notes how long a loop wants to pause, and waits for nothing."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def loop(pauses: Pauses) -> Loop[int]:
    return Loop("count", Caught(), pauses)


class Failing:
    """Raises at these of its calls; notes what it is given at all of them."""

    def __init__(self, *at: int, error: BaseException | None = None) -> None:
        self.at = at
        self.error = error or KeyError("a bug")
        self.got: list[int] = []

    def __call__(self, item: int, *_: object) -> bool:
        self.got.append(item)
        if len(self.got) in self.at:
            raise self.error
        return True


def _numbers(last: int, raises_before: Sequence[int] = ()) -> Callable[[], int | None]:
    left, raises = list(range(1, last + 1)), list(raises_before)

    def take() -> int | None:
        if raises and left and left[0] == raises[0]:
            raises.pop(0)
            raise OSError("nothing can be taken now")
        return left.pop(0) if left else None

    return take


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_goes_on_after_whatever_is_raised(loop: Loop[int], pauses: Pauses, error: BaseException) -> None:
    work = Failing(2, error=error)
    loop.run(_numbers(4), work)
    assert work.got == [1, 2, 3, 4]
    assert len(pauses) == 1


def test_taking_may_fail_too(loop: Loop[int], pauses: Pauses) -> None:
    work = Failing()
    loop.run(_numbers(3, raises_before=(1, 3)), work)
    assert work.got == [1, 2, 3]
    assert len(pauses) == 2


def test_what_was_in_hand_is_worked_on_again_until_another_end_is_found(loop: Loop[int], pauses: Pauses) -> None:
    work = Failing(2, 3, 4, 5)
    seen: list[tuple[int, str, int]] = []

    def rescue(item: int, error: BaseException, tries: int) -> bool:
        seen.append((item, type(error).__name__, tries))
        return tries == 4

    loop.run(_numbers(3), work, rescue)
    assert work.got == [1, 2, 2, 2, 2, 3]
    assert seen == [(2, "KeyError", tries) for tries in (1, 2, 3, 4)]


def test_what_succeeds_the_second_time_is_not_rescued_again(loop: Loop[int]) -> None:
    work = Failing(1)
    loop.run(_numbers(2), work, lambda item, error, tries: False)
    assert work.got == [1, 1, 2]


def test_a_rescue_that_fails_is_tried_again_but_not_for_ever(
    loop: Loop[int], pauses: Pauses, caplog: pytest.LogCaptureFixture
) -> None:
    work = Failing(1)
    rescue = Failing(1, 2)
    loop.run(_numbers(2), work, rescue)
    assert (work.got, rescue.got) == ([1, 2], [1, 1, 1])
    rescue = Failing(*range(1, 100))
    loop.run(_numbers(2), Failing(1), rescue)
    assert len(rescue.got) == 10
    assert "is lost" in caplog.text


def test_an_error_that_stays_is_no_busy_loop_and_fills_no_log(
    loop: Loop[int], pauses: Pauses, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        loop.run(_numbers(1), Failing(*range(1, 100)), lambda item, error, tries: tries == 50)
    assert pauses[:5] == [0.05, 0.1, 0.2, 0.4, 0.8]
    assert pauses[-1] == 5.0
    assert len(pauses) == 50
    assert sum(record.exc_info is not None for record in caplog.records) == 2, "the first and the tenth trace"
    assert caplog.messages[0] == "count: caught KeyError: 'a bug' (1 so far)"


def test_the_pause_is_short_again_after_a_success(loop: Loop[int], pauses: Pauses) -> None:
    loop.run(_numbers(6), Failing(1, 2, 3, 5))
    assert pauses == [0.05, 0.1, 0.2, 0.05]


def test_an_error_that_cannot_even_be_counted_ends_nothing(pauses: Pauses, monkeypatch: pytest.MonkeyPatch) -> None:
    def short_of_memory(*_: object) -> int:
        raise MemoryError

    monkeypatch.setattr(Caught, "note", short_of_memory)
    work = Failing(1)
    Loop("count", Caught(), pauses).run(_numbers(2), work)
    assert work.got == [1, 2]
    assert len(pauses) == 1


def test_what_is_passing_ends_the_loop(pauses: Pauses) -> None:
    loop: Loop[int] = Loop("count", Caught(), pauses, passing=(ValueError,))
    work = Failing(2, error=ValueError("the end"))
    with pytest.raises(ValueError, match="the end"):
        loop.run(_numbers(4), work)
    assert work.got == [1, 2]
    assert not pauses


def test_counts_are_kept_for_others_to_read(tmp_path: Path) -> None:
    file = tmp_path / "caught"
    caught = Caught(file)
    numbers = [caught.note("ship", OSError(text)) for text in ("first", "last")]
    assert [*numbers, caught.note("pack", KeyError("x"))] == [1, 2, 1]
    assert read_caught(file) == {}, "only when it is told to: loops do not write files"
    caught.save()
    assert read_caught(file) == {"ship": Trouble(2, "OSError: last"), "pack": Trouble(1, "KeyError: 'x'")}
    again = Caught(file)
    assert again.note("ship", OSError("after a restart")) == 3
    assert again.number == 4


def test_a_disk_that_takes_nothing_costs_only_the_time(tmp_path: Path) -> None:
    file = tmp_path / "away" / "caught"
    caught = Caught(file)
    caught.note("ship", OSError("first"))
    caught.save()
    file.parent.mkdir()
    caught.save()
    assert read_caught(file)["ship"].times == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}', '{"a": ["x", "y"]}', '{"a": [1]}', "null"])
def test_a_damaged_file_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "caught").write_text(text)
    assert read_caught(tmp_path / "caught") == {}
    assert Caught(tmp_path / "caught").note("ship", OSError("first")) == 1


class Page:
    """Something in hand that one can ask about when it is gone."""


@pytest.mark.parametrize("times", [0, 1, 12], ids=["nothing is raised", "work raises", "rescue raises, too"])
def test_what_was_in_hand_is_let_go_before_the_next_is_taken(pauses: Pauses, times: int) -> None:
    gone: list[bool] = []
    known: list[weakref.ref[Page]] = []

    def take() -> Page | None:
        gone.extend(page() is None for page in known)
        if known:
            return None
        page = Page()
        known.append(weakref.ref(page))
        return page

    left = list(range(times))

    def work(*_: object) -> bool:
        if left:
            raise KeyError(left.pop())
        return True

    loop: Loop[Page] = Loop("pages", Caught(), pauses)
    gc.disable()
    logging.disable()  # pytest keeps what is logged, and with it the error
    try:
        loop.run(take, work, work)
    finally:
        logging.disable(logging.NOTSET)
        gc.enable()
    assert gone == [True]
