"""Named places at which a test makes this process die, stop, wait or fail, to
see that nothing is lost.

`VEDETTE_FAILPOINTS="log.before_rename=kill@3,sink.after_commit=sleep:0.5"`: the third time
`log.before_rename` is reached the process kills itself; every time `sink.after_commit` is reached
it waits half a second. Without the variable a failpoint costs one dictionary look-up. They act only
where VEDETTE_TESTING is 1, as the tests set it: a server with VEDETTE_FAILPOINTS alone refuses to
start. With VEDETTE_FAILPOINTS_ONCE naming a folder each failpoint acts once in all processes
together: the restarted one continues.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

VARIABLE = "VEDETTE_FAILPOINTS"
ONCE = "VEDETTE_FAILPOINTS_ONCE"
TESTING = "VEDETTE_TESTING"
_hits: Counter[str] = Counter()


class FailpointReached(OSError):
    """What the action `raise` raises: an OSError, as if the disk had failed."""


def failpoint(name: str) -> None:
    """Does what the environment asks for at `name`: kill, killgroup, stop (the group), raise or
    sleep:SECONDS; nothing by default."""
    armed = os.environ.get(VARIABLE)
    if armed and os.environ.get(TESTING) == "1":
        _reach(name, armed)


def _reach(name: str, armed: str) -> None:
    _hits[name] += 1
    for item in armed.split(","):
        place, _, rest = item.strip().partition("=")
        action, _, nth = rest.partition("@")
        if place == name and (not nth or int(nth) == _hits[name]) and _claim(name):
            _act(name, action)


def _claim(name: str) -> bool:
    """Whether no process has acted at `name` yet; always, without VEDETTE_FAILPOINTS_ONCE."""
    folder = os.environ.get(ONCE)
    if not folder:
        return True
    try:
        Path(folder, name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _act(name: str, action: str) -> None:
    verb, _, argument = action.partition(":")
    if verb == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif verb == "killgroup":
        os.killpg(os.getpgrp(), signal.SIGKILL)
    elif verb == "stop":
        os.killpg(os.getpgrp(), signal.SIGSTOP)
    elif verb == "sleep":
        time.sleep(float(argument))
    elif verb == "raise":
        raise FailpointReached(f"failpoint {name}")
    else:
        raise ValueError(f"unknown action {action!r} for the failpoint {name}")
