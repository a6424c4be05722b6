"""Loads the filters of a folder: each *.py that does not begin with _ is one, in the order of their names."""

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from client.filtering.page import Page
from common.errors import ConfigError, PavoukError
from common.files import refuse_strangers

Keep = Callable[[Page], object]  # should be bool; nobody knows before it is called


class FilterError(PavoukError):
    """A filter cannot be used; says which file and why."""


def filter_files(folder: Path) -> list[Path]:
    """The modules of a folder; FilterError if there are none."""
    if not folder.is_dir():
        raise FilterError(f"there is no folder {folder}")
    _refuse_strangers(folder)
    files = sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))
    if not files:
        raise FilterError(f"there is no filter (*.py) in {folder}")
    return files


def _refuse_strangers(folder: Path) -> None:
    """Also what filters may import, and what Python has compiled of it."""
    try:
        for path in folder.rglob("*"):
            refuse_strangers(path)
    except ConfigError as error:
        raise FilterError(str(error)) from error


def load(folder: Path, on_begin: Callable[[str], None]) -> dict[str, Keep]:
    """The function `keep` of each module by its name. `on_begin` is told each file before it is loaded."""
    sys.dont_write_bytecode = True  # the folder is the user's
    sys.path.append(str(folder))  # modules that filters share; last, so that none can hide a library's
    filters = {}
    for file in filter_files(folder):
        on_begin(file.name)
        filters[file.stem] = _loaded(file)
    return filters


def _loaded(file: Path) -> Keep:
    spec = importlib.util.spec_from_file_location(f"filter {file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
        if callable(set_up := getattr(module, "setup", None)):
            set_up(file.parent)
    except BaseException as error:  # sys.exit() as well: foreign code
        raise FilterError(f"{file}: {reason(error, file)}") from error
    return _keep(module, file)


def _keep(module: ModuleType, file: Path) -> Keep:
    keep = getattr(module, "keep", None)
    if not callable(keep):
        raise FilterError(f"{file}: has no function keep(page)")
    return keep


def reason(error: BaseException, file: Path) -> str:
    """What went wrong, and in which line of the file."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return (f"line {lines[-1]}: " if lines else "") + f"{type(error).__name__}: {error}"
