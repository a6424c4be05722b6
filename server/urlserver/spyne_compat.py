"""Makes spyne 2.14.0 importable on Python 3.12 and later; import this module before spyne.

    import server.urlserver.spyne_compat  # noqa: F401
    # isort: split
    from spyne import Application

spyne carries a copy of `six` whose import hook serves `spyne.util.six.moves` by `find_module`, which Python
3.12 no longer calls (and 3.11 calls with a warning). The hook below serves the same modules the present way.
It is lazy: spyne itself is not imported here. Python 3.13 needs the package legacy-cgi besides.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_SIX = "spyne.util.six"


class _MovesFinder(MetaPathFinder, Loader):
    """Finds and loads what six's own hook knows; that hook still does the real work."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_SIX + ".moves"):
            return None
        hook = self._six_hook()
        if fullname not in hook.known_modules:
            return None
        if hook in sys.meta_path:  # from now on it would only cause warnings on 3.11
            sys.meta_path.remove(hook)
        return ModuleSpec(fullname, self, is_package=hook.is_package(fullname))

    def exec_module(self, module: ModuleType) -> None:
        """Puts six's module in the place of the empty one that the import system has made.

        Returning it from create_module would be shorter, but then the import system overwrites `__spec__`
        of standard modules such as urllib.parse, for these are what six hands out.
        """
        name = module.__name__
        del sys.modules[name]  # otherwise load_module takes the empty one for the result
        self._six_hook().load_module(name)

    @staticmethod
    def _six_hook() -> Any:
        # Submodules are only ever asked for after their parent has been loaded.
        return sys.modules[_SIX]._importer


sys.meta_path.append(_MovesFinder())
