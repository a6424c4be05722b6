"""A child process that must not outlive its parent, whatever happens to that. Linux only, as all of Pavouk."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_prctl = ctypes.CDLL(None).prctl  # looked up before the fork: afterwards a lock of the loader may be held by nobody


def end_with_parent(parent: int) -> None:
    """In the child: be ended by the kernel (kill -9) when the process `parent`, which has made us, is gone.

    At once, because nobody is left to end the children in order, and the next start needs their locks. All of our
    programs are made to survive it.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before that took effect
        os.kill(os.getpid(), signal.SIGKILL)
