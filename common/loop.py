"""A thread of ours is a loop that survives what is raised in it. Makes no threads: who makes one lets it `run` this.

What goes wrong in a turn costs that turn: it is logged, counted, and followed by a pause, and what was in hand is
worked on again or finds another end. So no thread ends without a word, and holds nothing for ever when it is gone.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

_FIRST_SECONDS = 0.05  # the pause after an error; it doubles with each further one in a row
_LONGEST_SECONDS = 5.0  # so an error that stays is no busy loop, and its end is noticed soon
_MAX_RESCUES = 10  # in a row that raise, then what was in hand is dropped
_MAX_TEXT = 200
_log = logging.getLogger(__name__)
_Item = TypeVar("_Item")


def in_words(error: BaseException) -> str:
    """For a log or a report: the type says as much as the text. Of any error, also one whose text cannot be had."""
    try:
        return f"{type(error).__name__}: {error}"[:_MAX_TEXT]
    except Exception:  # its `__str__` is anybody's code, and memory may be short
        return type(error).__name__


@dataclass(frozen=True, slots=True)
class Trouble:
    """What one loop has caught."""

    times: int
    last: str


class Caught:
    """What the loops of a process have caught, by their names. Thread-safe.

    With a `file`, `save` writes it there for those who ask about the process. What is there already counts, so that a
    process that was started again goes on where it was.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lock = threading.Lock()  # guards everything below
        self._troubles = read_caught(file) if file else {}
        self._is_saved = True

    def note(self, loop: str, error: BaseException) -> int:
        """One more; returns how many this loop has caught."""
        with self._lock:
            times = self._troubles[loop].times + 1 if loop in self._troubles else 1
            self._troubles[loop] = Trouble(times, in_words(error))
            self._is_saved = False
            return times

    def all(self) -> dict[str, Trouble]:
        with self._lock:
            return dict(self._troubles)

    @property
    def number(self) -> int:
        return sum(trouble.times for trouble in self.all().values())

    def save(self) -> None:
        """Write what is new. Never raises: a disk that takes nothing now may do so the next time."""
        if self._file is None or self._is_saved:
            return
        text = json.dumps({name: [each.times, each.last] for name, each in self.all().items()})
        temporary = self._file.with_name(self._file.name + ".part")
        with suppress(OSError):
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(self._file)
            self._is_saved = True


def read_caught(file: Path) -> dict[str, Trouble]:
    """What `save` has written; nothing if there is nothing that can be read."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        rows = json.loads(file.read_text(encoding="utf-8")).items()
        return {str(name): Trouble(int(times), str(last)) for name, (times, last) in rows}
    return {}


def told(troubles: Iterable[dict[str, Trouble]]) -> Iterator[str]:
    """For a person: what the loops of all processes of a program have caught; nothing if that is nothing."""
    by_name: dict[str, list[Trouble]] = {}
    for each in troubles:
        for name, trouble in each.items():
            by_name.setdefault(name, []).append(trouble)
    if by_name:
        number = sum(trouble.times for each in by_name.values() for trouble in each)
        yield f"it has caught {number} errors and gone on; its log tells more"
    for name, of_name in sorted(by_name.items()):
        yield f"  {name}: {sum(trouble.times for trouble in of_name)}, the last: {of_name[-1].last}"


def _dropped(item: object, error: BaseException, tries: int) -> bool:
    return True


class Loop(Generic[_Item]):
    """One loop, of one thread. `pause` waits so many seconds, or less when it is time to end.

    What is one of `passing` is no trouble of a turn: it ends the loop, and is raised.
    """

    def __init__(
        self,
        name: str,
        caught: Caught,
        pause: Callable[[float], object],
        passing: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._name = name
        self._caught = caught
        self._pause = pause
        self._passing = passing
        self._in_a_row = 0  # turns that have raised

    def run(
        self,
        take: Callable[[], _Item | None],
        work: Callable[[_Item], object],
        rescue: Callable[[_Item, BaseException, int], bool] = _dropped,
    ) -> None:
        """Work on one thing after the other, until `take` returns None.

        `rescue` gets what `work` has raised on, the error, and how many there were with it so far. It says whether that
        has found another end; else `work` gets it again.
        """
        while True:
            try:
                item = take()
            except self._passing:
                raise
            except BaseException as error:
                self._note(error)
                continue
            if item is None:
                return
            self._work_on(item, work, rescue)
            del item  # it can be a page of 20 MB, and the next one may come in an hour

    def _work_on(
        self,
        item: _Item,
        work: Callable[[_Item], object],
        rescue: Callable[[_Item, BaseException, int], bool],
    ) -> None:
        tries = rescues = 0
        error: BaseException | None = None  # that rescue has to hear of
        while True:
            try:
                if error is None:
                    work(item)
                    self._in_a_row = 0
                    return
                if rescue(item, error, tries):
                    error = None  # it leads to this frame, and so would keep what was in hand
                    return
                error, rescues = None, 0
            except self._passing:
                raise
            except BaseException as raised:  # also SystemExit, which would end a thread without a word
                rescues += error is not None
                if rescues >= _MAX_RESCUES:
                    self._note(raised)
                    _log.critical("%s: what was in hand is lost, because saving it fails, too", self._name)
                    error = None
                    return
                error = raised
                tries += 1
                self._note(raised)

    def _note(self, error: BaseException) -> None:
        """Count, tell and pause. The whole trace only once in a row of errors, and then once in a while."""
        self._in_a_row += 1
        trace = error if str(self._in_a_row).rstrip("0") == "1" else None
        with suppress(Exception):  # memory may be short for the words, too
            times = self._caught.note(self._name, error)
            _log.error("%s: caught %s (%d so far)", self._name, in_words(error), times, exc_info=trace)
        self._pause(min(_LONGEST_SECONDS, _FIRST_SECONDS * 2 ** min(self._in_a_row - 1, 30)))
