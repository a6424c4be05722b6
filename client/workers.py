"""Several processes of one client: started, watched, started again when one dies, and stopped together.

The interpreter lock keeps threads from using more than one core, so each process is a whole pipeline, with a name at
the server and a spool of its own. This process only watches; it has no other threads, so it can fork.
"""

import logging
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess

from client.patience import wait_seconds
from common.clock import Clock
from common.lifeline import end_with_parent
from common.loop import Caught, Loop

_STOP_SECONDS = 110.0
_TICK_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 60.0
_fork = multiprocessing.get_context("fork")
_log = logging.getLogger(__name__)


class Workers:
    """`run` blocks until `stop` is called by a signal handler."""

    def __init__(self, number: int, work: Callable[[int], int], clock: Clock, caught: Caught | None = None) -> None:
        self._work = work
        self._caught = caught or Caught()
        self._clock = clock
        self._start_at = dict.fromkeys(range(number), 0.0)  # process that does not run -> when to start it, in ticks
        self._running: dict[int, ForkProcess] = {}
        self._deaths = 0
        self._stopping = False
        self._waker, self._wake = os.pipe()  # read and write end

    def stop(self) -> None:
        """Ask `run` to end; safe in a signal handler."""
        self._stopping = True
        os.write(self._wake, b"!")

    def run(self) -> bool:
        """Keep all processes running until they are stopped; says whether all of them ended properly."""
        loop: Loop[Workers] = Loop("watch", self._caught, lambda seconds: wait([self._waker], seconds))
        loop.run(lambda: None if self._stopping else self, Workers._turn)
        return self._end_all()

    def _turn(self) -> None:
        self._start_due()
        wait([self._waker, *(process.sentinel for process in self._running.values())], _TICK_SECONDS)
        self._note_dead()
        self._caught.save()

    def _start_due(self) -> None:
        for number, start_at in list(self._start_at.items()):
            if start_at <= self._clock.ticks():
                process = _fork.Process(target=self._child, args=(number, os.getpid()))
                process.start()
                self._running[number] = process
                del self._start_at[number]

    def _child(self, number: int, parent: int) -> None:
        end_with_parent(parent)
        raise SystemExit(self._work(number))

    def _note_dead(self) -> None:
        for number, process in list(self._running.items()):
            if process.exitcode is not None and not self._stopping:
                pause = wait_seconds(self._deaths, _LONGEST_WAIT_SECONDS)
                self._deaths += 1
                self._caught.note(f"process {number + 1}", ChildProcessError(f"died ({process.exitcode})"))
                _log.error("process %d died (%s); started again in %.1f s", number + 1, process.exitcode, pause)
                self._start_at[number] = self._clock.ticks() + pause
                del self._running[number]

    def _end_all(self) -> bool:
        deadline = self._clock.ticks() + _STOP_SECONDS
        while self._alive() and self._clock.ticks() < deadline:
            for process in self._alive():
                process.terminate()  # again and again: one that has just been made may not be listening yet
            wait([process.sentinel for process in self._alive()], _TICK_SECONDS)
        for process in self._alive():
            _log.error("a process did not end within %.0f s", _STOP_SECONDS)
            process.kill()
        for process in self._running.values():
            process.join()
        return all(process.exitcode == 0 for process in self._running.values())

    def _alive(self) -> list[ForkProcess]:
        return [process for process in self._running.values() if process.is_alive()]
