"""The file format of the harvest: one bundle holds pages of one domain from one job.

    example.org.1700000000.JOB.tar.bz2           a tar file: MANIFEST.jsonl, then data.* and data.xml of each page
    example.org.1700000000.JOB.tar.bz2.manifest  the same manifest, zstd, with size and digest of the whole file

The manifest inside makes a bundle prove itself; the one beside it lets the receiver verify and catalogue without
unpacking. The file beside is published first, so that a bundle with its final name always has its manifest.

A bundle comes from outside. Whoever reads one does it here, so that all limits and checks are here, too, and everything
that can be wrong with one is a BundleError.

    names      what files are called
    manifest   the values, and how they are written and parsed
    checks     what each field of a manifest must be
    limits     how much there may be in how little
    container  unpacking, and the members of a tar file, as a stream
    writer     makes bundles
    reader     reads stored bundles
"""

from common.bundle.checks import check_manifest, check_name, check_sizes
from common.bundle.manifest import Manifest, PageEntry, manifest_bytes, parse_head, parse_manifest
from common.bundle.names import (
    FORMATS,
    MANIFEST_NAME,
    MANIFEST_SUFFIX,
    bundle_name,
    is_job_name,
    manifest_path,
    parse_bundle_name,
)
from common.bundle.reader import file_sha256, manifest_inside, read_beside, read_manifest, read_pages, verify_pages
from common.bundle.writer import BundleWriter

__all__ = [
    "FORMATS",
    "MANIFEST_NAME",
    "MANIFEST_SUFFIX",
    "BundleWriter",
    "Manifest",
    "PageEntry",
    "bundle_name",
    "check_manifest",
    "check_name",
    "check_sizes",
    "file_sha256",
    "is_job_name",
    "manifest_bytes",
    "manifest_inside",
    "manifest_path",
    "parse_bundle_name",
    "parse_head",
    "parse_manifest",
    "read_beside",
    "read_manifest",
    "read_pages",
    "verify_pages",
]
