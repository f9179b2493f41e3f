"""How this family's kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compiles a function at the first call with its types; the code is cached on disk and runs
    without the interpreter's lock."""
    compile_: Any = njit(cache=True, nogil=True)
    compiled: F = compile_(function)
    return compiled
