"""Where numba keeps compiled kernels, and when it compiles them again: as soon as any file on which
they can depend has changed, and for other types of arguments, but not for other constants.

numba itself compares only the file that a kernel is in. A kernel has the functions that it calls,
constants and the order of the fields of structs compiled into it, so one of which these changed in
another file would be loaded stale: it would crash or answer wrongly. Which files these are cannot
be seen from their text. `engine` names these locators to numba before it is loaded.

numba also compares only after it has read the whole index of a kernel, which fails if the kernel
took a class that is no more, or if a machine that lost its power left the file empty. Such an index
counts as none, and code that cannot be read is compiled again.

numba numbers the files of a kernel's compiled code. Two processes that compile at once, for
different arguments or from different releases, may take the same number; then the index of one
leads to the code of the other. Here a file is named after what is in it.
"""

from __future__ import annotations

import glob
import hashlib
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from numba import types
from numba.core.caching import IndexDataCacheFile, InTreeCacheLocator, UserProvidedCacheLocator, UserWideCacheLocator
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps as _dumps

ENGINE = Path(__file__).parent
ABOVE = ("backtest", "runtime", "sinks", "sources")
"""Packages that no kernel of the others depends on, because those do not import them."""


@cache
def _digest(*, above: bool) -> str:
    """Of all files of the engine, or of those outside ABOVE."""
    digest = hashlib.sha256()
    for path in sorted(ENGINE.rglob("*.py")):
        if above or path.relative_to(ENGINE).parts[0] not in ABOVE:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def source_stamp(file: str) -> str:
    """A digest of all files on which a kernel in this file can depend."""
    path = Path(file)
    if not path.is_relative_to(ENGINE):
        return _digest(above=True) + hashlib.sha256(path.read_bytes()).hexdigest()
    return _digest(above=path.relative_to(ENGINE).parts[0] in ABOVE)


class NamedFolder(UserProvidedCacheLocator):
    """In the folder that `NUMBA_CACHE_DIR` names, if it names one."""

    def get_source_stamp(self) -> str:
        return source_stamp(self._py_file)


class InSourceFolder(InTreeCacheLocator):
    """In `__pycache__`, next to the kernel's own file."""

    def get_source_stamp(self) -> str:
        return source_stamp(self._py_file)


class InHome(UserWideCacheLocator):
    """In the user's own cache, where the user may not write to the code's folder: then what set-up
    compiled there is compiled once more."""

    def get_source_stamp(self) -> str:
        return source_stamp(self._py_file)


_load_index: Any = IndexDataCacheFile._load_index
_load_data: Any = IndexDataCacheFile._load_data
_dumped: Any = _dumps
UNREADABLE = (AttributeError, EOFError, ImportError, IndexError, KeyError, TypeError, UnpicklingError, ValueError)
"""What reading of a damaged file, or of one that names what is no more, may raise."""


def _readable_index(file: Any) -> Any:
    """As numba's, but empty where it cannot be read."""
    try:
        return _load_index(file)
    except UNREADABLE:
        return {}


def _readable_data(file: Any, name: str) -> Any:
    """As numba's, which takes an OSError for code that is not there."""
    try:
        return _load_data(file, name)
    except UNREADABLE as error:
        raise OSError(f"{name} cannot be read") from error


def _save(file: Any, key: Any, data: Any) -> None:
    """As numba's, with a name for each release and key; files that the index no
    longer names are removed."""
    named = file._load_index()
    name = f"{Path(file._index_name).stem}.{hashlib.sha256(_dumped((file._source_stamp, key))).hexdigest()[:32]}.nbc"
    file._save_data(name, data)
    named[key] = name
    file._save_index(named)
    kept = set(named.values())
    folder = Path(file._cache_path)
    for other in folder.glob(f"{glob.escape(Path(file._index_name).stem)}.*.nbc"):
        if other.name not in kept:
            other.unlink(missing_ok=True)


_call_template: Any = Dispatcher.get_call_template
_without_constant: Any = types.unliteral


def _call_template_without_constants(kernel: Any, args: Any, kws: Any) -> Any:
    """As numba's, for the types of the arguments of the engine's kernels only. numba compiles a
    kernel once more for each constant that another kernel passes to it, and for each variable that
    begins as a constant: a seventh of the time that compilation took."""
    if kernel.py_func.__module__.startswith("engine."):
        args, kws = [_without_constant(arg) for arg in args], {name: _without_constant(arg) for name, arg in kws.items()}
    return _call_template(kernel, args, kws)


Dispatcher.get_call_template = _call_template_without_constants  # type: ignore[assignment]
IndexDataCacheFile._load_index = _readable_index  # type: ignore[method-assign]
IndexDataCacheFile._load_data = _readable_data  # type: ignore[method-assign]
IndexDataCacheFile.save = _save  # type: ignore[method-assign]
