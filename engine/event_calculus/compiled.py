"""How this family's kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compiled at the first call with its types, cached on disk, and run without the interpreter's lock."""
    compile_: Any = njit(cache=True, nogil=True)
    compiled: F = compile_(function)
    return compiled
