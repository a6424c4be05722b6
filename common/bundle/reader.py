"""Reads stored bundles. Each came from outside, and may be damaged since: nothing that it says about itself is taken
for true before it is checked, and no more is unpacked than there can be."""

import hashlib
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from common.bundle.checks import check_name, check_sizes
from common.bundle.container import Container, Member
from common.bundle.limits import MAX_MANIFEST_BYTES, MAX_XML_BYTES, bundle_room, manifest_room
from common.bundle.manifest import Manifest, PageEntry, parse_lines, parse_manifest
from common.bundle.names import MANIFEST_NAME, manifest_path
from common.errors import BundleError, UnsoundBundle

_ANY_BODY = 2_000_000_000  # the largest max_body_bytes


def read_manifest(bundle: Path) -> Manifest:
    """The manifest of a stored bundle: from the file beside it, or else from inside."""
    try:
        return read_beside(bundle)
    except BundleError:
        return manifest_inside(bundle)


def read_beside(bundle: Path) -> Manifest:
    """The manifest beside a bundle, if it is that of this bundle."""
    path = manifest_path(bundle)
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise UnsoundBundle(f"{path.name} has more bytes than a manifest")
        manifest = parse_manifest(path.read_bytes())
        check_name(bundle.name, manifest)
    except OSError as error:
        raise BundleError(f"{path.name} cannot be read: {error.strerror}") from error
    except UnsoundBundle as error:
        raise UnsoundBundle(f"{bundle.name}: {error}") from error
    except BundleError as error:
        raise BundleError(f"{bundle.name}: {error}") from error
    return manifest


def manifest_inside(bundle: Path) -> Manifest:
    """The manifest in the bundle itself: its first member, so this reads the beginning only."""
    with Container(bundle, bundle_room(_size_of(bundle))) as container:
        return _first(container, bundle)


def read_pages(bundle: Path, max_body_bytes: int = 0) -> Iterator[tuple[PageEntry, bytes, bytes]]:
    """Each page with its body and its data.xml, checked against the manifest; BundleError if anything differs.

    With `max_body_bytes` a bundle that has a larger page is refused: a body is held in memory as a whole.
    """
    with Container(bundle, bundle_room(_size_of(bundle), max_body_bytes)) as container:
        for entry in _entries(container, bundle, max_body_bytes or _ANY_BODY):
            body = _whole(_proven(container, entry.data_member, entry.size, entry.meta.sha1))
            xml = _whole(_proven(container, entry.xml_member, None, entry.xml_sha1))
            yield entry, body, xml
        _check_end(container)


def verify_pages(bundle: Path, max_body_bytes: int = 0) -> None:
    """Read everything, hold nothing; BundleError if anything differs from the manifest."""
    with Container(bundle, bundle_room(_size_of(bundle), max_body_bytes)) as container:
        for entry in _entries(container, bundle, _ANY_BODY):
            for _ in _proven(container, entry.data_member, entry.size, entry.meta.sha1):
                pass
            for _ in _proven(container, entry.xml_member, None, entry.xml_sha1):
                pass
        _check_end(container)


def _entries(container: Container, bundle: Path, max_body_bytes: int) -> tuple[PageEntry, ...]:
    manifest = _first(container, bundle)
    check_sizes(manifest, _size_of(bundle), max_body_bytes)
    _check_same(bundle, manifest)
    return manifest.pages


def _check_end(container: Container) -> None:
    if container.next() is not None:
        raise BundleError("it has members that its manifest does not list")


def _check_same(bundle: Path, inside: Manifest) -> None:
    """What was received and catalogued is what the manifest beside says; it must be what is inside."""
    try:
        beside = read_beside(bundle)
    except BundleError:
        return  # then the one inside counts
    if beside.pages != inside.pages:
        raise BundleError("the manifest beside it lists other pages than the one inside")


def _first(container: Container, bundle: Path) -> Manifest:
    member = container.next()
    if member is None or member.name != MANIFEST_NAME:
        raise BundleError("it does not begin with a manifest")
    room = manifest_room(_size_of(bundle))
    if member.size > room:
        raise UnsoundBundle(f"{MANIFEST_NAME} has {member.size} bytes, more than the {room} that it may")
    manifest = parse_lines(container.content(member))
    check_name(bundle.name, manifest)
    return manifest


def _proven(container: Container, name: str, size: int | None, sha1: str) -> Iterable[bytes]:
    """The content of the next member; BundleError at its end if it is another one, or has other content."""
    member = container.next()
    if member is None or member.name != name:
        raise BundleError(f"{name} is missing; found {f'{member.name!r:.200}' if member else 'the end'}")
    _check_size(member, size)
    hasher = hashlib.sha1(usedforsecurity=False)
    for piece in container.content(member):
        hasher.update(piece)
        yield piece
    if hasher.hexdigest() != sha1:
        raise BundleError(f"{name} does not match its digest")


def _whole(pieces: Iterable[bytes]) -> bytes:
    whole = io.BytesIO()  # joining a list would take twice the memory
    whole.writelines(pieces)
    return whole.getvalue()


def _check_size(member: Member, size: int | None) -> None:
    if member.size > (MAX_XML_BYTES if size is None else size):
        raise UnsoundBundle(f"{member.name} is larger than it may be")
    if size is not None and member.size < size:
        raise BundleError(f"{member.name} does not have the size that the manifest says")


def file_sha256(path: Path) -> str:
    """Digest of a whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size_of(bundle: Path) -> int:
    try:
        return bundle.stat().st_size
    except OSError as error:
        raise BundleError(f"{bundle.name} cannot be read: {error.strerror}") from error
