"""Limits on the form of URLs, which end most of the endless spaces that broken and malicious sites have.

What has no such form (calendars, searches) is ended by limits on the number of pages.
"""

from collections.abc import Callable

Trap = Callable[[str, str], str]  # address, its host -> the rule that excludes it, or nothing


def length_trap(limit: int) -> Trap:
    """URLs with more characters."""
    return lambda url, _: "max_url_length" if len(url) > limit else ""


def query_trap(limit: int) -> Trap:
    """URLs with more parameters in their query."""

    def trap(url: str, _: str) -> str:
        if url.count("&") < limit:  # nearly all
            return ""
        parameters = url.partition("?")[2].split("&")
        return "max_query_parameters" if len(parameters) - parameters.count("") > limit else ""

    return trap


def path_trap(max_depth: int, max_repeats: int) -> Trap:
    """Paths with more segments, and paths with a sequence of segments more often in a row; 0 for no limit."""
    floor = 2 + min(limit + 1 for limit in (max_depth, max_repeats) if limit)  # slashes: two are those behind http:

    def trap(url: str, _: str) -> str:
        if url.count("/") < floor:  # most
            return ""
        segments = url.partition("?")[0].split("/")[3:]
        if not segments[-1]:
            segments.pop()
        if max_depth and len(segments) > max_depth:
            return "max_path_depth"
        # What stands so often in a row stands there so often: a quick look at all of them first.
        if max_repeats and len(segments) - len(set(segments)) >= max_repeats and _repeats(segments, max_repeats):
            return "path_repetition"
        return ""

    return trap


def _repeats(segments: list[str], limit: int) -> bool:
    """Whether any sequence of segments stands more than `limit` times in a row."""
    for length in range(1, len(segments) // (limit + 1) + 1):
        same = 0  # segments in a row that are the same as those one sequence later
        for segment, later in zip(segments, segments[length:], strict=False):
            same = same + 1 if segment == later else 0
            if same >= length * limit:
                return True
    return False
