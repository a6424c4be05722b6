"""Why a page that is stored does not count, as a sentence for a person."""

from server.catalogue.apart import REPEATED, Apart
from server.frontier.claims import Claim


def doubt(stored: Apart) -> str:
    """Why a page does not count; empty if it does."""
    told = {
        REPEATED: f"job {stored.job} has stored another page of this URL before",
        Claim.HELD: f"job {stored.job} has not reported it",
        Claim.FALSE: f"job {stored.job} never had this URL, or has reported something else of it",
    }
    return told.get(stored.why, "")
