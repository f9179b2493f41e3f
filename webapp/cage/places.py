"""How many children work at the same time, and for whom: one user holds at most half of the places, so that others are answered meanwhile."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

AT_ONCE = 4
"""How many requests of a kind each process handles concurrently."""
OF_ONE_USER = 2
"""How many of them may be of one user."""
WAIT_S = 10.0
"""How long others wait for one of these to end."""
Asker = Callable[[], Hashable | None]


class Busy(RuntimeError):
    """Too many are at work: to be asked again later."""


def _nobody() -> None:
    """Commands and tasks ask for no user."""


_asker: ContextVar[Asker] = ContextVar("asker", default=_nobody)


@contextmanager
def asked_by(asker: Asker) -> Iterator[None]:
    """Work inside takes places of the user that `asker` returns, which is called only then: by then a token's user is known too."""
    before = _asker.set(asker)
    try:
        yield
    finally:
        _asker.reset(before)


class Places:
    """AT_ONCE places. Safe to be used by several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken: Counter[Hashable | None] = Counter()

    @contextmanager
    def place(self) -> Iterator[None]:
        """Takes one of them. Raises Busy if none becomes free within WAIT_S."""
        asker = _asker.get()()
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_free(asker), WAIT_S):
                raise Busy
            self._taken[asker] += 1
        try:
            yield
        finally:
            with self._changed:
                self._taken -= Counter([asker])
                self._changed.notify_all()

    def _is_free(self, asker: Hashable | None) -> bool:
        return self._taken.total() < AT_ONCE and (asker is None or self._taken[asker] < OF_ONE_USER)
