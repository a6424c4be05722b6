"""One log format for all programs. Console lines that belong to a program's interface do not pass here."""

import logging
from pathlib import Path

_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def set_up(level: str = "INFO", file: Path | None = None) -> None:
    """Send the logs of this process to `file`, or to standard error."""
    handler: logging.Handler = logging.StreamHandler() if file is None else logging.FileHandler(file)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # These report each request or each reconnect at INFO: noise beside our own lines.
    for name in ("spyne", "zeep", "urllib3", "pyftpdlib"):
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
