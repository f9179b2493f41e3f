"""Compiling without reference counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Compiled = TypeVar("Compiled", bound=Callable[..., Any])


def jit_without_refcounts(function: Compiled) -> Compiled:
    """Compiles a function that creates no arrays, without reference counting of its arguments.

    Counting took nine tenths of the time of functions that take many arrays and call each other for every event.
    """
    return _compiled(function, forceinline=False)


def jit_inlined(function: Compiled) -> Compiled:
    """Like `jit_without_refcounts`, but inlined into its callers: passing ten arrays takes as long as checking fifty events."""
    return _compiled(function, forceinline=True)


def _compiled(function: Compiled, **more: bool) -> Compiled:
    options: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False, **more}
    compiled: Compiled = njit(**options)(function)
    return compiled
