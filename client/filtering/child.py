"""The process of the filters: `python -m client.filtering.child PARENT HANDLE FOLDER`.

Takes pages from the socket HANDLE and answers a line of JSON for each filter that has judged one; the first that
discards is the last that is asked. Foreign code runs here, and the process can be killed at any moment.
"""

import contextlib
import json
import os
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from client.filtering.loading import FilterError, Keep, load
from client.filtering.page import Page, receive_page
from common.lifeline import end_with_parent

_MAX_TEXT = 4000  # characters of a message
Say = Callable[..., None]


def main() -> int:
    parent, handle, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    end_with_parent(parent)
    # If memory runs out, a filter that has taken it shall go, not the crawl.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    os.set_inheritable(handle, False)  # not for programs that a filter starts
    with socket.socket(fileno=handle) as link:

        def say(**message: object) -> None:
            link.sendall(json.dumps(message).encode() + b"\n")

        try:
            filters = load(folder, lambda name: say(loading=name))
        except FilterError as error:
            say(error=str(error)[:_MAX_TEXT])
            return 1
        say(ready=True)
        with link.makefile("rb") as pages:
            while (received := receive_page(pages)) is not None:
                _judge(*received, filters, say)
    return 0


def _judge(page: Page, names: list[str], filters: dict[str, Keep], say: Say) -> None:
    for name in names:
        try:
            answer = filters[name](page)
        except BaseException as error:  # sys.exit() as well: foreign code
            text = "".join(traceback.format_exception(error))
            say(trouble=f"raised {type(error).__name__}", text=text[-_MAX_TEXT:])
            continue
        if isinstance(answer, bool):
            say(keep=answer)
            if not answer:
                return
        else:
            say(trouble=f"returned {type(answer).__name__} instead of True or False", text="")


if __name__ == "__main__":
    sys.exit(main())
