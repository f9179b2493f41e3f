"""Where numba keeps compiled kernels, and when it compiles them again: as soon as any file with kernels has changed.

numba itself compares only the file that a kernel stands in. A kernel has the functions that it calls compiled into it, so one whose callee
changed in another file would be loaded stale, and crash. `engine` names these locators to numba before it is loaded.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from numba.core.caching import InTreeCacheLocator, UserProvidedCacheLocator, UserWideCacheLocator

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
