"""Who may log in: one account, whose password is set or follows from a secret. What it may do is not decided here."""

from pyftpdlib.exceptions import AuthenticationFailed

from common.secrets import FTP_USER, ftp_password, same_secret


class Account:
    """The one account, as pyftpdlib asks for it. Has no state, so all sessions share it."""

    def __init__(self, secret: str, user: str = "", password: str = "") -> None:
        self._user = user or FTP_USER
        self._password = password or ftp_password(secret)

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
