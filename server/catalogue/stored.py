"""Walks through the files of Pages/. Reads only; knows nothing of the catalogue's database."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from common.bundle import Manifest, file_sha256, parse_bundle_name, read_manifest
from common.errors import BundleError, PavoukError
from common.names import is_domain_name


class UnreadableFolder(PavoukError):
    """A folder of Pages/ is there and cannot be listed: what is in it is not known."""


def domains_in(directory: Path) -> list[str]:
    """The folders that can hold bundles, in order. UnreadableFolder if nobody can say."""
    with _listing(directory):
        return sorted(entry.name for entry in directory.iterdir() if is_domain_name(entry.name) and entry.is_dir())


def bundle_names_in(directory: Path, domain: str) -> set[str]:
    """The names of the complete bundles of a domain. UnreadableFolder if nobody can say: then none of them is gone."""
    folder = directory / domain
    with _listing(folder):
        if not folder.is_dir():
            return set()
        return {entry.name for entry in folder.iterdir() if is_bundle_of(domain, entry.name)}


def has_bundles(directory: Path) -> bool:
    """Whether a single bundle is there, or may be in a folder that cannot be listed."""
    return directory.is_dir() and any(_has_some(directory, domain) for domain in domains_in(directory))


def _has_some(directory: Path, domain: str) -> bool:
    try:
        return bool(bundle_names_in(directory, domain))
    except UnreadableFolder:
        return True


@contextmanager
def _listing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnreadableFolder(f"{folder} cannot be listed: {error.strerror}") from error


def is_bundle_of(domain: str, name: str) -> bool:
    """Whether `name` is a bundle's name and belongs in the folder of this domain."""
    parsed = parse_bundle_name(name)
    return parsed is not None and parsed[0] == domain


def stored_manifest(path: Path, verify: bool = False) -> Manifest:
    """The manifest of a stored bundle, with its size and digest; BundleError if the file differs.

    The manifest inside cannot know the digest of the file it is in: then, or to `verify`, the file is read.
    """
    manifest = read_manifest(path)
    try:
        size = path.stat().st_size
        known = bool(manifest.bundle_sha256)
        digest = file_sha256(path) if verify or not known else manifest.bundle_sha256
    except OSError as error:
        raise BundleError(f"{path.name} cannot be read: {error}") from error
    if known and (manifest.bundle_size, manifest.bundle_sha256) != (size, digest):
        raise BundleError(f"{path.name} is not the file that its manifest describes")
    return replace(manifest, bundle_size=size, bundle_sha256=digest)
