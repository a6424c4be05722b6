"""How much there may be in how little: a few bytes of bz2 or zstd can stand for gigabytes.

What an honest client packs is far below. It cuts a harvest off at 32 MB, whatever it compresses to.
"""

MAX_LINE_BYTES = 100_000  # of a manifest; an address has 2,000 characters, and an honest line not more than 20,000
MAX_XML_BYTES = 1 << 28  # of a data.xml
MAX_NAME_BYTES = 1 << 16  # of a member's name that does not fit into the header of a tar file
# What unpacking itself may hold. The writers' levels need 2 MB; RFC 8878 §3.1.1.1.2 asks of a reader to know 8 MB.
MAX_WINDOW_BYTES = 1 << 23
PIECE_BYTES = 1 << 16  # unpacked at once

MAX_MANIFEST_BYTES = 64_000_000  # unpacked: more than 100,000 pages

_MANIFEST_RATIO = 40  # a line has three digests, which do not compress, in 500 bytes: about 6 to 1
_MANIFEST_ROOM = 2_000_000
_BUNDLE_RATIO = 100  # pages are about 6 to 1
_BUNDLE_ROOM = 200_000_000  # what repeats itself without end may be packed all the same: it is what a host has sent
_ROOM_IN_BODIES = 8


def manifest_room(packed_bytes: int) -> int:
    """How long a manifest may be that has so many bytes packed, or that is in a bundle of so many bytes."""
    return min(_MANIFEST_ROOM + _MANIFEST_RATIO * packed_bytes, MAX_MANIFEST_BYTES)


def bundle_room(packed_bytes: int, max_body_bytes: int = 0) -> int:
    """How long all that is in a bundle of so many bytes may be together."""
    return max(_BUNDLE_ROOM, _ROOM_IN_BODIES * max_body_bytes) + _BUNDLE_RATIO * packed_bytes
