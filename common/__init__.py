"""What server and client agree on: URLs, configuration, wire values, bundles. No threads, no sockets.

    urls      address and identity of a URL       settings  every setting, typed, with its default
    names     URL to path and back                config    reads them from config.cfg and the command line
    wire      values that cross the network       secrets   what follows from it, or stands for it
    bundle    the file format of the harvest      files     publish a file whole, and keep it private
    page      data.xml of one page                lifeline  a child that ends with its parent
    tokens    where the token comes from          seeds     start URLs as operators write them, and files of them
    extras    the libraries that commands need
    clock     the time, replaceable in tests      logs      one log format for all programs
    errors    the exceptions we raise on purpose  ending    the wish to end, as signals tell it
"""

VERSION = "0.1.0"  # pyproject.toml reads it here: asking for what is installed takes 30 ms of every start
