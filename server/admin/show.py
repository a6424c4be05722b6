"""An operator's answers as short aligned lines for a person. Pure: dictionaries in, lines out."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Line = tuple[str, object]

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def lines(command: str, answer: Mapping[str, Any]) -> list[str]:
    """What is printed for one answer."""
    return aligned(_SHOWN[command](answer))


def aligned(pairs: Iterator[Line]) -> list[str]:
    """A name and a value on each line, the values one below the other."""
    rows = [(name, str(value)) for name, value in pairs]
    width = max((len(name) for name, _ in rows), default=0) + 2
    return [f"{name:{width}}{value}".rstrip() for name, value in rows]


def size(number: float | None) -> str:
    """A number of bytes for a person."""
    if number is None:
        return "unknown"
    unit = 0
    while number >= 1000 and unit < len(_UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.1f} {_UNITS[unit]}" if unit else f"{number} bytes"


def _status(answer: Mapping[str, Any]) -> Iterator[Line]:
    totals, jobs = answer["totals"], answer["jobs"]
    yield "state", _state(answer)
    yield "running", f"{answer['running_seconds']:.0f} s in all"
    for name in ("known", "queued", "leased", "done", "failed", "excluded"):
        yield name, totals[name]
    yield "stored", f"{totals['stored']} pages, {size(totals['size'])}"
    if totals["revisits"] or answer["next_due"]:
        yield "visited again", f"{totals['revisits']}: {totals['revisions']} changed, {totals['unchanged']} unchanged"
    if answer["next_due"]:
        yield "next visit", answer["next_due"]
    yield "hosts", totals["hosts"]
    yield "clients", f"{answer['clients']} with {jobs['number']} jobs"
    for job in jobs["first"]:
        yield "  job", f"{job['job']}, {job['client']}, {job['urls']} URLs, until {job['deadline']}"
    told_by = {"blocked": _plain, "delays": _own_delay, "priorities": _own_priority, "full": _plain, "parked": _until}
    for name, told in told_by.items():
        yield from _hosts(name, answer[name], told)
    yield "counters", "add up" if not answer["unsound"] else f"wrong for {', '.join(answer['unsound'])}: run audit"
    for loop, trouble in answer["caught"].items():
        yield "caught", f"{trouble['times']} errors in {loop}, the last: {trouble['last']}; urlServer's log tells more"
    free = answer["disk_free_bytes"]
    yield "free space", f"{size(free['frontier'])} for the frontier, {size(free['pages'])} for pages"


def _state(answer: Mapping[str, Any]) -> str:
    state = "paused" if answer["paused"] else "finished" if answer["finished"] else "crawling"
    limit = answer["ended_by"]
    return f"{state}: {limit} is reached" if limit else state


def _hosts(name: str, some: Mapping[str, Any], told: Callable[[Mapping[str, Any]], str]) -> Iterator[Line]:
    yield name, f"{some['number']} hosts"
    for host in some["first"]:
        yield "", told(host)
    if some["number"] > len(some["first"]):
        yield "", f"and {some['number'] - len(some['first'])} more"


def _plain(host: Mapping[str, Any]) -> str:
    return f"{host['name']}, {host['queued']} queued"


def _own_delay(host: Mapping[str, Any]) -> str:
    return f"{host['name']}, {host['own_delay_seconds']:g} s"


def _own_priority(host: Mapping[str, Any]) -> str:
    return f"{host['name']}, priority {host['priority']}, {host['queued']} queued"


def _until(host: Mapping[str, Any]) -> str:
    return f"{host['name']}, asked again at {host['not_before']}, {host['queued']} queued"


def _explain(answer: Mapping[str, Any]) -> Iterator[Line]:
    yield "URL", answer["url"]
    yield "identity", answer["identity"]
    yield "digest", answer["digest"]
    yield "state", answer["state"]
    if answer["is_sitemap"]:
        yield "kind", "sitemap: what it lists is found; it is read, not stored"
    for name in ("reason", "requested", "score", "tries", "due", "ended"):
        if answer[name] or (name == "score" and answer[name] is not None):
            yield name, answer[name]
    if answer["interval_seconds"]:
        yield "visited every", f"{answer['interval_seconds'] / 3600:g} hours"
    if answer["absent_since"]:
        yield "moved since" if answer["reason"] == "redirected" else "gone since", answer["absent_since"]
    if lease := answer["lease"]:
        yield "leased to", f"{lease['client']}, job {lease['job']}, until {lease['deadline']}"
    yield "host", _host(answer["host"])
    for page in answer["stored"]:
        yield "stored in", page["bundle"]
        yield "  as", f"{page['member']}, {size(page['size'])}, crawled {page['crawled']}"
        if not page["confirmed"]:
            yield "  not confirmed", page["doubt"]
    if answer["stored_number"] > len(answer["stored"]):
        yield "", f"and {answer['stored_number'] - len(answer['stored'])} more"
    if not answer["stored"]:
        yield "stored", answer["catalogue"] or "no"


def _host(host: Mapping[str, Any]) -> str:
    parts = [host["name"], f"delay {host['delay_seconds']:g} s"]
    if host["own_delay_seconds"] is not None:
        parts.append("set by an operator")
    if host["priority"]:
        parts.append(f"priority {host['priority']}")
    if host["is_full"]:
        parts.append(f"full with {host['stored']} pages (max_pages_per_host)")
    if host["is_blocked"]:
        parts.append("blocked")
    if host["is_parked"]:
        parts.append(f"does not answer, asked again at {host['not_before']}")
    return ", ".join(parts)


def _pause(answer: Mapping[str, Any]) -> Iterator[Line]:
    yield ("paused: no more jobs are handed out" if answer["paused"] else "resumed"), ""


def _blocked(answer: Mapping[str, Any]) -> Iterator[Line]:
    for word, hosts in answer.items():
        for host in hosts:
            yield word, host


def _delay(answer: Mapping[str, Any]) -> Iterator[Line]:
    seconds = answer["seconds"]
    yield answer["host"], "as the settings and robots.txt say" if seconds is None else f"{seconds:g} s"


def _priority(answer: Mapping[str, Any]) -> Iterator[Line]:
    yield answer.get("host") or answer["url"], f"priority {answer['priority']}"
    if "before" in answer:
        yield "before", answer["before"]


def _add(answer: Mapping[str, Any]) -> Iterator[Line]:
    yield "added", answer["added"]
    yield "known before", answer["known"]


def _blacklist(answer: Mapping[str, Any]) -> Iterator[Line]:
    for item in answer["urls"]:
        yield item["outcome"], f"{item['url']}  ({item['detail']}; {item['tries']} tries, {item['time']})"
    yield "in all", answer["number"]


def _queue(answer: Mapping[str, Any]) -> Iterator[Line]:
    for item in answer["urls"]:
        tried = f"; {item['tries']} tries, next at {item['due']}" if item["due"] else ""
        yield f"{item['kind']:7}", f"{item['url']}  (depth {item['depth']}{tried})"
    if answer.get("is_last", True):
        yield "in all", answer["number"]


def _retry(answer: Mapping[str, Any]) -> Iterator[Line]:
    yield "queued again", answer["retried"]


def _audit(answer: Mapping[str, Any]) -> Iterator[Line]:
    for name, number in answer["counts"].items():
        yield name, size(number) if name == "bytes" else number
    for name in ("notes", "differences", "repaired", "left"):
        if name in answer:
            yield from _listing(name, answer[name])


def _listing(name: str, listing: Mapping[str, Any]) -> Iterator[Line]:
    yield name, listing["number"]
    for item in listing["first"]:
        yield f"  {item['kind']}", item["what"]
    if listing["number"] > len(listing["first"]):
        yield "", f"and {listing['number'] - len(listing['first'])} more"


def _recover(answer: Mapping[str, Any]) -> Iterator[Line]:
    if not answer["damage"]:
        yield "nothing is damaged", ""
        return
    yield "damage", answer["damage"]
    yield "kept", f"what was there is in {answer['kept']}"
    match answer["missing"]:
        case None:
            yield "gone", "changes that were acknowledged; how many cannot be told"
        case 0:
            yield "gone", "nothing that is known of"
        case missing:
            yield "gone", f"{missing} changes that were acknowledged"
    if answer["differences"]:
        yield "left", "nothing to go on with: its tables do not agree. manual/commands.md tells how to begin anew"
    else:
        yield "left", "the frontier can be used again. Next: crawlAdmin audit --repair, before urlServer is started"


_SHOWN: dict[str, Callable[[Mapping[str, Any]], Iterator[Line]]] = {
    "status": _status, "explain": _explain, "pause": _pause, "resume": _pause, "block": _blocked, "unblock": _blocked,
    "delay": _delay, "priority": _priority, "add": _add, "blacklist": _blacklist, "queue": _queue, "retry": _retry,
    "audit": _audit, "recover": _recover,
}  # fmt: skip
