"""What the files of a bundle are called."""

import re
from pathlib import Path

FORMATS = ("tar.bz2", "tar.zst")
MANIFEST_SUFFIX = ".manifest"
MANIFEST_NAME = "MANIFEST.jsonl"

_JOB = r"[0-9A-Za-z_-]{1,40}"
_JOB_NAME = re.compile(_JOB)
_FILE_NAME = re.compile(
    rf"(?P<domain>.+)\.(?P<time>[0-9]{{1,12}})\.(?P<job>{_JOB})\.(?P<format>tar\.(?:bz2|zst))"
)


def bundle_name(domain: str, created: int, job: str, container: str) -> str:
    """The file name of a bundle."""
    return f"{domain}.{created}.{job}.{container}"


def is_job_name(text: str) -> bool:
    """Whether a job can be called so, as far as names of files go."""
    return _JOB_NAME.fullmatch(text) is not None


def parse_bundle_name(name: str) -> tuple[str, int, str, str] | None:
    """Domain, time, job and container of a bundle's file name; None if it is not one."""
    match = _FILE_NAME.fullmatch(name)
    return (match["domain"], int(match["time"]), match["job"], match["format"]) if match else None


def manifest_path(bundle: Path) -> Path:
    """Where the manifest beside a bundle is."""
    return bundle.with_name(bundle.name + MANIFEST_SUFFIX)
