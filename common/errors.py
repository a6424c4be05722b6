"""The exceptions Pavouk raises on purpose. Each message is a sentence the reader can act on."""


class PavoukError(Exception):
    """Base of all of them: what a command prints without a traceback."""


class ConfigError(PavoukError):
    """A setting is unknown or has a bad value; says where and what was expected."""


class BundleError(PavoukError):
    """A bundle or manifest is broken: incomplete, altered, or not in our format."""


class UnsoundBundle(BundleError):
    """A bundle or manifest is whole, and says what cannot be: forged, a bomb, or made by a program with a mistake."""


class RemoteUnavailable(PavoukError):
    """A server of ours cannot be reached or answers nonsense: try again later."""


class RemoteRefused(PavoukError):
    """A server of ours understood and said no: trying again changes nothing."""
