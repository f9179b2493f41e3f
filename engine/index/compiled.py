"""How kernels are compiled that take many arrays and call each other for every event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def kernel(*signature: Any, inline: bool = False) -> Callable[[F], F]:
    """Compiles a function that creates no arrays, without reference counts of its arguments:
    counting them took nine tenths of the time.

    `inline`: into its callers, because passing ten arrays takes as long as checking fifty events.
    """
    compiler: Any = njit
    return cast(Callable[[F], F], compiler(*signature, cache=True, nogil=True, _nrt=False, forceinline=inline))


def part(function: F) -> F:
    """A part of a kernel that it may call recursively: numba cannot compile functions that call
    each other, so it becomes the caller's text before types are inferred."""
    compiler: Any = njit
    return cast(F, compiler(function, inline="always"))
