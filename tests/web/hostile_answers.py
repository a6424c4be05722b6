"""Well-formed answers that mean harm: redirects, statuses, waits, types, names for the file system, and traps."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import sha1

from tests.web.call import HTML, HTML_START, PAGE, Behaviour, Call
from tests.web.pages import Answer

TRAP_LINKS = 2
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010000000037")


async def ok(call: Call) -> int:
    """Nothing wrong."""
    return await call.page()


async def redirect_loop(call: Call) -> int:
    """/redirect-loop-N: a circle of N addresses."""
    length, at = int(call.argument), int(call.option("at", "0"))
    return await _redirect(call, f"/redirect-loop-{length}?at={(at + 1) % length}")


async def redirects(call: Call) -> int:
    """/redirects/N: so many addresses in a row, and a page behind the last."""
    left = int(call.argument)
    return await _redirect(call, f"/redirects/{left - 1}") if left else await ok(call)


async def redirect_to(call: Call) -> int:
    """/redirect-to?u=URL, made longer by `pad` characters; or ?hex= for bytes that are no URL."""
    if "hex" not in call.query:
        return await _redirect(call, call.option("u", "/ok") + "x" * int(call.option("pad", "0")))
    location = bytes.fromhex(call.option("hex", ""))
    end = b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    await call.send(b"HTTP/1.1 302 Found\r\nLocation: " + location + end)
    return 302


async def status(call: Call) -> int:
    """/status/NNN, with a small page."""
    return await call.reply(Answer(int(call.argument), HTML, PAGE))


async def retry_after(call: Call) -> int:
    """429 (or `status`) with Retry-After: `seconds` for the first `times` requests, then a page.

    `seconds` may be any text; `date` is a date so many seconds from now."""
    if call.times >= int(call.option("times", "1")):
        return await ok(call)
    value = call.option("seconds", "1")
    if "date" in call.query:
        date = datetime.now(UTC) + timedelta(seconds=float(call.option("date", "0")))
        value = format_datetime(date, usegmt=True)
    return await call.reply(Answer(int(call.option("status", "429")), (*HTML, ("Retry-After", value)), PAGE))


async def content_type(call: Call) -> int:
    """/type/KIND: a page or a picture that says to be of the type `is`."""
    return await call.page({"html": PAGE, "png": PNG, "nothing": b""}[call.argument], call.option("is", ""))


async def no_content_with_body(call: Call) -> int:
    """204, which has no body (RFC 9110 §15.3.5), with one."""
    start = HTML_START.replace(b"200 OK", b"204 No Content")
    await call.send(start + b"Content-Length: %d\r\n\r\n" % len(PAGE) + PAGE)
    return 204


async def named(call: Call) -> int:
    """A page that has its own address as text, at every address that begins so."""
    return await call.page(PAGE + call.argument.encode())


async def trap(call: Call) -> int:
    """Every address has a page, and every page has links to new ones."""
    name = sha1(call.argument.encode(), usedforsecurity=False).hexdigest()[:8]
    return await call.page(PAGE + b"".join(b'<a href="%s-%d/">' % (name.encode(), n) for n in range(TRAP_LINKS)))


BEHAVIOURS: dict[str, Behaviour] = {
    "/ok": ok,
    "/redirect-loop-": redirect_loop,
    "/redirects/": redirects,
    "/redirect-to": redirect_to,
    "/status/": status,
    "/retry-after": retry_after,
    "/type/": content_type,
    "/no-content-with-body": no_content_with_body,
    "/names/": named,
    "/trap/": trap,
}


async def _redirect(call: Call, location: str) -> int:
    return await call.reply(Answer(302, (*HTML, ("Location", location)), PAGE))
