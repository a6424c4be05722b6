"""Which libraries the commands need beside the core, by the extra of pyproject.toml that brings them.

Imports nothing but the standard library: it must work where everything else is missing.
"""

import signal
import sys
from importlib.util import find_spec

LIBRARIES = {
    "": ("ada_url", "re2", "url_normalize", "zstandard"),
    "server": ("cgi", "h11", "lxml", "OpenSSL", "publicsuffixlist", "pyftpdlib", "rocksdict", "spyne"),
    "client": ("brotli", "bs4", "certifi", "daemon", "protego", "pycurl", "selectolax", "zeep"),
}
_BAD_USAGE = 2


def require(command: str, *extras: str) -> None:
    """End the program with one line if a library of these extras is not installed. From here until the command listens
    to signals itself, Ctrl-C just ends it: there is nothing to clean up yet, and a traceback tells nobody anything."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    lacking = [extra for extra in extras if any(map(_is_missing, LIBRARIES[extra]))]
    if not lacking and not any(map(_is_missing, LIBRARIES[""])):
        return
    name = "all" if len(extras) > 1 else extras[0]
    print(f"{command}: libraries of it are not installed; install them: pip install 'pavouk[{name}]'", file=sys.stderr)
    sys.exit(_BAD_USAGE)


def _is_missing(name: str) -> bool:
    try:
        return find_spec(name) is None
    except ModuleNotFoundError:  # another finder forbids it
        return True
