"""Walks through the files of Pages/. Reads only; knows nothing of the catalogue's database."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from common.bundle import Manifest, file_sha256, parse_bundle_name, read_manifest
from common.errors import BundleError
from common.names import is_domain_name


def domains_in(directory: Path) -> Iterator[str]:
    """The folders that can hold bundles, in order."""
    entries = sorted(directory.iterdir())
    return (entry.name for entry in entries if is_domain_name(entry.name) and entry.is_dir())


def bundle_names_in(directory: Path, domain: str) -> set[str]:
    """The names of the complete bundles of a domain."""
    folder = directory / domain
    if not folder.is_dir():
        return set()
    return {entry.name for entry in folder.iterdir() if is_bundle_of(domain, entry.name)}


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
