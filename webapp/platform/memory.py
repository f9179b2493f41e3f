"""What a process keeps for as long as it lives."""

from __future__ import annotations

import gc


def keep_what_is_loaded() -> None:
    """To be called once a long-lived process has loaded what it works with: the collector of garbage does not look through that again.

    Measured where answers become facts: with the hundreds of thousands of objects that Django, Spark and the kernels load, collecting took half of
    the time (1.0 s a million rows of Beijing's taxis instead of 0.5 s).
    """
    gc.collect()
    gc.freeze()
