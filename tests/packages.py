"""Pages and test data of foreign packages that ./test gets; None where it could not."""

from pathlib import Path

_PACKAGES = Path(__file__).resolve().parents[1] / ".setup" / "packages"


def html5lib_tests() -> Path | None:
    """The test data of html5lib: folders `encoding`, `tree-construction` and others."""
    return _there(_PACKAGES / "html5lib-source" / "html5lib" / "tests" / "testdata")


def debian_pages(package: str) -> Path | None:
    """The folder of a Debian package's documentation."""
    return _there(_PACKAGES / package / "usr" / "share" / "doc" / package)


def _there(folder: Path) -> Path | None:
    return folder if folder.is_dir() else None
