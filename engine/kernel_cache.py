"""Where numba keeps compiled kernels, and when it compiles them again: as soon as any file with kernels has changed.

numba itself compares only the file that a kernel stands in. A kernel has the functions that it calls compiled into it, so one whose callee
changed in another file would be loaded stale, and crash. `engine` names these locators to numba before it is loaded.

numba also compares only after it has read the whole index of a kernel, which fails if the kernel took a class that is no more. Such an index is
of another release, and counts as none.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile, InTreeCacheLocator, UserProvidedCacheLocator, UserWideCacheLocator

ENGINE = Path(__file__).parent


@cache
def kernels_stamp() -> str:
    """A digest of all files of the engine that import numba."""
    digest = hashlib.sha256()
    for path in sorted(ENGINE.rglob("*.py")):
        text = path.read_bytes()
        if b"numba" in text:
            digest.update(hashlib.sha256(text).digest())
    return digest.hexdigest()


class NamedFolder(UserProvidedCacheLocator):
    """In the folder that `NUMBA_CACHE_DIR` names, if it names one."""

    def get_source_stamp(self) -> str:
        return kernels_stamp()


class BesideSource(InTreeCacheLocator):
    """In `__pycache__`, beside the kernel's own file."""

    def get_source_stamp(self) -> str:
        return kernels_stamp()


class InHome(UserWideCacheLocator):
    """In the user's own cache, where the code is not the user's to write to: then what set-up compiled beside it is compiled once more."""

    def get_source_stamp(self) -> str:
        return kernels_stamp()


_load_index: Any = IndexDataCacheFile._load_index


def _readable_index(file: Any) -> Any:
    """As numba's, but empty where it names what is no more."""
    try:
        return _load_index(file)
    except (AttributeError, ImportError):
        return {}


IndexDataCacheFile._load_index = _readable_index  # type: ignore[method-assign]
