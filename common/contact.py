"""Who crawls hosts of others must be reachable for them: what is said when `contact` is empty. Pure: no look-ups."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from common.addresses import is_address, is_closed


def missing_contact(hosts: Iterable[str]) -> str:
    """The warning about a crawl without a contact that asks these hosts (with port); empty if all are private."""
    for host in hosts:
        if not _is_private(urlsplit(f"//{host}").hostname or ""):
            return (
                f"contact is empty, and {host} may be somebody else's: set it to a URL or a mail address, so that who "
                "is asked can tell whom to write to"
            )
    return ""


def _is_private(name: str) -> bool:
    """Whatever name servers say: a closed address, localhost, or a name without a dot."""
    if is_address(name):
        return is_closed(name)
    return "." not in name or name.endswith(".localhost")
