"""Lets go of a message as soon as it is answered.

spyne 2.14.0 leaves each message behind in cycles, with its text, its document and its rows, and searches all objects
for such garbage, at most every second: until then a busy server holds many messages of some megabytes, and the search
takes longer with each host in memory.
"""

import math
from typing import Any

import server.urlserver.spyne_compat  # noqa: F401

# isort: split
from spyne import const

_PARTS = ("transport", "event", "inprot_ctx", "outprot_ctx")  # of a context: each refers to it
_CARGO = (
    "in_string", "in_document", "in_header_doc", "in_body_doc", "in_error", "in_header", "in_object", "out_object",
    "out_header", "out_error", "out_body_doc", "out_header_doc", "out_document", "out_string", "out_stream",
)  # fmt: skip


def let_go_of_messages(app: Any) -> None:
    """For this application, and no more searches by any."""
    app.app.event_manager.add_listener("method_context_closed", _let_go)
    const.MIN_GC_INTERVAL = math.inf


def _let_go(context: Any) -> None:
    for error in (context.in_error, context.out_error):
        if isinstance(error, BaseException):  # its traceback leads back here
            error.__traceback__ = error.__cause__ = error.__context__ = None
    for name in _CARGO:
        setattr(context, name, None)
    for name in _PARTS:
        part = getattr(context, name)
        if part is not None:
            part.parent = None
            part.__dict__.pop("_subctx", None)
