"""A process for work that may go wrong in any way: started with a socket to talk through, and killed at will."""

import contextlib
import os
import signal
import socket
import subprocess
import sys

from common.errors import PavoukError
from common.tokens import VARIABLE

_END_SECONDS = 1.0


class ChildTrouble(PavoukError):
    """It does not answer any more, or cannot be started; nothing can be done but to end it. Says why."""


class Child:
    """One process, running `module` with the arguments: our process number, its end of the socket, and `arguments`.

    It dies with the thread that makes it: this is what the kernel counts as its parent.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self.link, theirs = socket.socketpair()
        with theirs:
            handle = theirs.fileno()
            self._process = subprocess.Popen(
                # -P: a folder of the user's that is called like one of our packages must not get in the way
                [sys.executable, "-P", "-m", module, str(os.getpid()), str(handle), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what it prints is no output of ours
                pass_fds=[handle],
                env={name: value for name, value in os.environ.items() if name != VARIABLE},  # it needs no secret
                start_new_session=True,  # Ctrl-C is for us, and it can be killed with all that it has started
            )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """Let it end by itself; kill it if it does not."""
        self.link.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Now, with all that it has started."""
        self.link.close()
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def trouble(self, error: OSError | None = None) -> ChildTrouble:
        """Why it does not talk to us any more; `error` is what the socket says."""
        if isinstance(error, TimeoutError):
            return ChildTrouble("did not answer in time")
        try:
            code = self._process.wait(_END_SECONDS)  # the end of the socket comes a moment before that of the process
        except subprocess.TimeoutExpired:
            return ChildTrouble("does not talk to us any more")
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return ChildTrouble(f"ended its process ({how})")
