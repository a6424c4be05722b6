"""Lists of regular expressions on URLs. The only module that knows RE2.

RE2 takes a time that is linear in the length of the text, whatever the expression: a list written by an operator and
a URL written by a stranger must not stall the server together. Python's own `re` gives no such promise.
"""

from collections.abc import Sequence

import re2

MAX_EXPRESSION_LENGTH = 1_000  # characters
MAX_LIST_LENGTH = 100_000  # characters of all expressions together
_EXPRESSION_MEMORY = 256_000  # bytes for one compiled expression: `(.{1,30}){33}` fits, and costs 3 ms at the worst
_LIST_MEMORY = 64_000_000  # bytes for all of them as one


class BadExpression(ValueError):
    """An expression that cannot be used; the message says which and why."""


class Expressions:
    """A list of expressions, compiled once. Each is searched for: it may match anywhere in a text."""

    def __init__(self, patterns: Sequence[str]) -> None:
        if sum(map(len, patterns)) > MAX_LIST_LENGTH:
            raise BadExpression(f"all expressions together have more than {MAX_LIST_LENGTH} characters")
        self._each = [(pattern, _compiled(pattern)) for pattern in patterns]
        self._any = _together(patterns)

    def is_any_in(self, text: str) -> bool:
        """Whether one of them matches."""
        encoded = text.encode()
        if self._any is not None:  # nearly always: one search instead of many
            return self._any.search(encoded) is not None
        return any(compiled.search(encoded) for _, compiled in self._each)

    def found_in(self, text: str) -> str:
        """The first expression that matches; empty if none does."""
        if not self.is_any_in(text):
            return ""
        encoded = text.encode()
        return next(pattern for pattern, compiled in self._each if compiled.search(encoded))


def _compiled(pattern: str) -> "re2._Regexp":
    if len(pattern) > MAX_EXPRESSION_LENGTH:
        raise BadExpression(f"{pattern[:40]!r}… has more than {MAX_EXPRESSION_LENGTH} characters")
    if not pattern.isascii():
        raise BadExpression(f"{pattern!r} can never match: URLs are ASCII (%C5%BE in a path, xn--… in a host)")
    try:
        return re2.compile(pattern.encode(), _options(_EXPRESSION_MEMORY))
    except re2.error as error:
        reason = error.args[0].decode(errors="replace")
        raise BadExpression(f"{pattern!r} is no regular expression (RE2): {reason}") from None


def _together(patterns: Sequence[str]) -> "re2._Regexp | None":
    """All as one; None if that cannot be, for example because one of them ends within \\Q."""
    try:
        return re2.compile("|".join(f"(?:{pattern})" for pattern in patterns).encode(), _options(_LIST_MEMORY))
    except re2.error:
        return None


def _options(memory: int) -> re2.Options:
    options = re2.Options()
    options.max_mem = memory
    options.encoding = re2.Options.Encoding.LATIN1  # an eighth of the size: `.` is one byte
    options.never_capture = True
    options.log_errors = False  # on stderr, beside our own message
    return options
