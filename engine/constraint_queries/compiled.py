"""Compiling without reference counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Compiled = TypeVar("Compiled", bound=Callable[..., Any])


def bare(function: Compiled) -> Compiled:
    """Compiles a function that makes no arrays: without the right to, it counts no references to those it is given.

    Counting took nine tenths of the time of functions that take many arrays and call each other for every event.
    """
    return _compiled(function, forceinline=False)


def inlined(function: Compiled) -> Compiled:
    """The same, put into the place where it is called: handing over ten arrays takes as long as looking at fifty events."""
    return _compiled(function, forceinline=True)


def _compiled(function: Compiled, **more: bool) -> Compiled:
    options: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False, **more}
    compiled: Compiled = njit(**options)(function)
    return compiled
