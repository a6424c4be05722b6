"""A certificate for 127.0.0.1 and localhost, made by openssl for one test run."""

import shutil
import subprocess
from pathlib import Path

import pytest


def make_certificate(folder: Path, name: str = "server") -> tuple[Path, Path]:
    """Certificate and key as PEM files. It signs itself, so it is also what a client must trust."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
            "-keyout", key, "-out", certificate,
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key
