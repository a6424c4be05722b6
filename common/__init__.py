"""What server and client agree on: URLs, configuration, wire values, bundles. No threads, no sockets.

    urls    address and identity of a URL          config  every setting, typed, with its default
    wire    values that cross the network          bundle  the file format of the harvest
    names   URL to path and back                   page    data.xml of one page
    clock   the time, replaceable in tests         logs    one log format for all programs
    errors  the few exceptions we raise on purpose files   publish a file completely or not at all
"""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("pavouk")
except PackageNotFoundError:  # run from a source tree that was never installed
    VERSION = "0.1.0"
