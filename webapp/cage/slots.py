"""Limits how many children work at the same time: one user holds at most half of the slots, so that
others are answered meanwhile."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

AT_ONCE = 4
"""How many requests of a kind each process handles concurrently."""
OF_ONE_USER = 2
"""How many of them one user may have."""
WAIT_S = 10.0
"""How long further requests wait for a free slot."""
Requester = Callable[[], Hashable | None]


class Busy(RuntimeError):
    """Too many children are working: the request may be repeated later."""


def _no_user() -> None:
    """Commands and tasks run without a user."""


_requester: ContextVar[Requester] = ContextVar("requester", default=_no_user)


@contextmanager
def requested_by(requester: Requester) -> Iterator[None]:
    """Work inside takes slots of the user that `requester` returns, which is called only then: by
    then a token's user is known too."""
    before = _requester.set(requester)
    try:
        yield
    finally:
        _requester.reset(before)


class Slots:
    """AT_ONCE slots. Safe to be used by several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken: Counter[Hashable | None] = Counter()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Takes one of them. Raises Busy if none becomes free within WAIT_S."""
        requester = _requester.get()()
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_free(requester), WAIT_S):
                raise Busy
            self._taken[requester] += 1
        try:
            yield
        finally:
            with self._changed:
                self._taken -= Counter([requester])
                self._changed.notify_all()

    def _is_free(self, requester: Hashable | None) -> bool:
        return self._taken.total() < AT_ONCE and (requester is None or self._taken[requester] < OF_ONE_USER)
