"""A service with one working process for each `var` folder."""

from __future__ import annotations

import fcntl
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from webapp.platform.waits import limit_waits


@contextmanager
def single_service(folder: Path, name: str, say: Callable[[str], object]) -> Iterator[threading.Event]:
    """Holds `<name>.lock` in the folder, waiting for the process that holds it; SIGTERM and SIGINT
    end the block and set the event."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    limit_waits()
    folder.mkdir(parents=True, exist_ok=True)
    end = threading.Event()
    with (folder / f"{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield end
        except KeyboardInterrupt:
            end.set()
            say("Stopped.")
