"""Who may log in: one account, whose password is set or follows from the token. What it may do is decided elsewhere."""

import ipaddress

from pyftpdlib.exceptions import AuthenticationFailed

from common.errors import ConfigError
from common.secrets import FTP_USER, ftp_password, same_secret


class Account:
    """The one account, as pyftpdlib asks for it. Has no state, so all sessions share it."""

    def __init__(self, token: str, user: str = "", password: str = "") -> None:
        self._user = user or FTP_USER
        self._password = password or ftp_password(token)

    def validate_authentication(self, username: str, password: str, handler: object) -> None:
        right_user = same_secret(username, self._user)
        if not (same_secret(password, self._password) and right_user):
            raise AuthenticationFailed("Wrong user or password: the token must be the same on both sides.")

    def has_perm(self, username: str, perm: str, path: str | None = None) -> bool:
        return True  # the session offers only what everybody who is logged in may do

    def get_home_dir(self, username: str) -> str:
        return "/"  # of the names that the session knows, not of the disk

    def get_msg_login(self, username: str) -> str:
        return "Send bundles."

    def get_msg_quit(self, username: str) -> str:
        return "Goodbye."

    def impersonate_user(self, username: str, password: str) -> None:
        """There is no system user behind the account."""

    def terminate_impersonation(self, username: str) -> None:
        """There is no system user behind the account."""


def check_exposure(ip: str, token: str) -> None:
    """ConfigError if strangers could log in: without a token the password is known to everybody."""
    if not token and not is_loopback(ip):
        raise ConfigError(f"ip = {ip} can be reached from outside and needs a token; set token, or ip = 127.0.0.1")


def is_loopback(ip: str) -> bool:
    """Whether only this machine can connect to `ip`. A name that is no address could mean anything."""
    try:
        return ipaddress.ip_address(ip).is_loopback
    except ValueError:
        return ip == "localhost"
