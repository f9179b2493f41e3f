"""How this family's kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compiled when first called with its types, kept on disk, and letting go of the interpreter while it runs."""
    compile_: Any = njit(cache=True, nogil=True)
    compiled: F = compile_(function)
    return compiled
