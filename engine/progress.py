"""How far a run is, on standard error: one moving line on a terminal, a plain
line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from engine.model.counts import counted

PLAIN_EVERY_S = 10.0
MOVE_EVERY_S = 0.1


class Progress:
    """Shows rows, speed and answers while it is open. A run of less than a few seconds
    prints one line at its end."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._started = self._shown = time.monotonic()
        self._live: Any = None

    def __enter__(self) -> Progress:
        if self._terminal:
            from rich.console import Console

            self._live = Console(stderr=True).status("reading", spinner="line")
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, rows: int, changes: int, watermark: int | None) -> None:
        """Writes the state, at most as often as a user can read it."""
        now = time.monotonic()
        if now - self._shown < (MOVE_EVERY_S if self._terminal else PLAIN_EVERY_S):
            return
        self._shown = now
        changed = f"{counted(changes, 'change')} of answers, watermark {watermark}"
        line = f"{counted(rows, 'row')} read ({rows / max(now - self._started, 1e-9):,.0f}/s), {changed}"
        if self._live is not None:
            self._live.update(line)
        else:
            self._print(line)

    def end(self, rows: int, answers: int, seconds: float) -> None:
        """The last line."""
        self._print(f"{counted(rows, 'row')} in {seconds:.1f} s ({rows / max(seconds, 1e-9):,.0f}/s): {counted(answers, 'answer')}")

    def _print(self, line: str) -> None:
        sys.stderr.write(f"backtest: {line}\n")
        sys.stderr.flush()
