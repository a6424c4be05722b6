"""Standard output of the commands: it shows what strangers have written, on whatever terminal."""

import io
import sys


def show_all_characters() -> None:
    """What the terminal has no character for is shown escaped, as on standard error, instead of ending the program."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
