"""Storing what one batch found while the next one is evaluated."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class StoreQueue:
    """What is stored of one feed, in order: each thing after the one before,
    and only if that succeeded.

    With an executor it is stored while the caller continues, who calls `settle` before giving it
    more than belongs together; without one, at once.
    """

    def __init__(self, executor: Executor | None) -> None:
        self.is_concurrent = executor is not None
        self._executor = executor or _ImmediateExecutor()
        self._under_way: list[Future[None]] = []
        self._since = 0.0

    def begin(self, act: Callable[[], None]) -> None:
        """Has `act` called. The executor may be shared: it begins in the order of the calls, so
        that no feed waits for one that waits for it."""
        before = self._under_way[-1:]

        def after() -> None:
            for earlier in before:
                earlier.result()
            act()

        if not before:
            self._since = time.monotonic()
        self._under_way.append(self._executor.submit(after))

    def settle(self) -> None:
        """Waits until everything is stored. Raises what the first failure was."""
        under_way, self._under_way = self._under_way, []
        for one in under_way:
            one.result()

    @property
    def since(self) -> float | None:
        """When the first of what is under way began (`time.monotonic`); null
        when everything is stored."""
        return self._since if any(not one.done() for one in list(self._under_way)) else None


class _ImmediateExecutor(Executor):
    """Has done what it was given when `submit` returns."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except BaseException as error:
            done.set_exception(error)
        return done
