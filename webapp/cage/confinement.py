"""The permissions of a child, and how it drops all others."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from webapp.cage import kernel

ROOT = Path(__file__).resolve().parents[2]
SYSTEM = ("/usr/lib", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/urandom", "/proc/cpuinfo")
"""Libraries and devices that interpreters open while they run."""
KEPT = ("LD_LIBRARY_PATH", "NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "TZ")
"""Variables of the server that a child inherits: how libraries are found and how many threads they
take. Everything else may be a secret."""


# Threads that were started before the restrictions are not confined: numerical libraries and memory
# allocators start some when they are loaded.
_WITHOUT_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


def child_environment() -> dict[str, str]:
    """The whole environment of a child."""
    return {"LANG": "C.UTF-8", **_WITHOUT_THREADS, **{name: os.environ[name] for name in KEPT if name in os.environ}}


def own_code() -> list[Path]:
    """The folders of the interpreter, its packages and this program, which every child may read.
    The project's `var` is not among them."""
    paths = {sys.prefix, sys.base_prefix, sys.exec_prefix, *sysconfig.get_paths().values()}
    return [*(Path(path).resolve() for path in sorted(paths) if path), ROOT / "engine", ROOT / "webapp", *map(Path, SYSTEM)]


def gaps() -> list[str]:
    """The restrictions that this system does not support."""
    restrictions = {"files beyond its own": kernel.restricts_files(), "the network and other programs": kernel.refuses_calls()}
    return [name for name, is_in_force in restrictions.items() if not is_in_force]


def confine(*, read: Iterable[Path], processes: bool = False) -> None:
    """Denies this thread, and everything that it starts later, the network, other programs and
    processes, and all files except those named.

    The restrictions in `gaps` are skipped. Raises OSError when a supported restriction fails.
    """
    kernel.drop_capabilities()
    if kernel.restricts_files() and not kernel.restrict_files([*own_code(), *read]):
        raise OSError("the kernel has Landlock, but refuses its rules")
    if kernel.refuses_calls() and not kernel.refuse_calls(processes=processes):
        raise OSError("the kernel filters system calls, but refuses the filter")
