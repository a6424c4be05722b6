"""Secrets that follow from others: from the token, or from the one that a host without a token makes for itself.

Where the token itself comes from is in tokens.py.
"""

import hashlib
import hmac
import ipaddress
import os
import secrets
import stat
from pathlib import Path

from common.errors import ConfigError
from common.files import private_folder, publish_new

FTP_USER = "pavouk"
SECRET_NAME = "secret"  # in .mem/: of a host without a token
_MAX_SECRET_BYTES = 1_000


def ftp_password(secret: str) -> str:
    """The password of the FTP account. Whoever learns it cannot get back to the token."""
    return hmac.new(secret.encode(), b"pavouk ftp", hashlib.sha256).hexdigest()


def same_secret(given: str, expected: str) -> bool:
    """Compare in a time that does not depend on where the two differ."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode(errors="replace"))


def check_exposure(ip: str, token: str) -> None:
    """ConfigError if strangers could talk to a server that asks for no token."""
    if not token and not is_loopback(ip):
        raise ConfigError(f"ip = {ip} is reachable from outside and needs a token; set token, or ip = 127.0.0.1")


def is_loopback(ip: str) -> bool:
    """Whether only this machine can connect to `ip`. A name that is no address could mean anything."""
    try:
        return ipaddress.ip_address(ip).is_loopback
    except ValueError:
        return ip == "localhost"


def host_secret(memory: Path) -> str:
    """The random secret that the programs of one work folder share, made by the first that needs it."""
    path = memory / SECRET_NAME
    try:
        private_folder(memory)
        known = known_host_secret(memory)
        if known is None:
            publish_new(path, secrets.token_hex(32).encode())
            known = known_host_secret(memory)
    except OSError as error:
        raise ConfigError(f"{path} cannot be used: {error.strerror or error}") from error
    assert known is not None
    return known


def known_host_secret(memory: Path) -> str | None:
    """The secret, if there is one; ConfigError if somebody else could know or have made it."""
    path = memory / SECRET_NAME
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        known = os.fstat(handle)
        owners = (os.geteuid(), memory.stat().st_uid)
        if not stat.S_ISREG(known.st_mode) or known.st_mode & 0o077 or known.st_uid not in owners:
            raise ConfigError(f"{path} must be a file of yours that nobody else can read: delete it, or set a token")
        secret = file.read(_MAX_SECRET_BYTES).decode("ascii", "replace").strip()
    if not secret:
        raise ConfigError(f"{path} is empty: delete it, and start urlServer and ftpServer again")
    return secret
