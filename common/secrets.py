"""What follows from the one secret that is configured, the token; both servers derive it in the same way."""

import hashlib
import hmac

FTP_USER = "pavouk"


def ftp_password(token: str) -> str:
    """The password of the FTP account. Whoever learns it cannot get back to the token."""
    return hmac.new(token.encode(), b"pavouk ftp", hashlib.sha256).hexdigest()


def same_secret(given: str, expected: str) -> bool:
    """Compare in a time that does not depend on where the two differ."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode(errors="replace"))
