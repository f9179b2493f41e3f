"""Checks specifications without blocking the web process: long programs of rules are
checked in a caged process.

Reading a rule takes about a millisecond, so a program of thousands would block all other requests
for seconds.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from engine.model.faults import Fault, Refused, fault_from_json, refuse
from engine.model.feed import Feed
from engine.model.messages import Message
from engine.specification import check
from webapp.cage.warm_pool import ENGINE, CageRequest, TookTooLong

LONG = 20_000
"""Programs with more characters are checked in a caged process: about 300 rules."""
SECONDS = 4.0
MEMORY_BYTES = 2 << 30
KEPT = 64
FAULTS = 200
"""Faults shown of a long program."""


def faults_of(specification: Any, feed: Feed, regions: Mapping[str, Any]) -> list[Fault]:
    """All faults of a specification; empty if there are none. The first FAULTS of a long
    program."""
    if is_long(specification):
        return _VERDICTS.faults(specification, feed, regions)
    try:
        check(specification, feed, regions)
    except Refused as refused:
        return list(refused.faults)
    return []


def is_long(specification: Any) -> bool:
    """Whether it is a program that is checked in a separate process."""
    program = specification.get("program") if isinstance(specification, dict) else None
    return isinstance(program, str) and len(program) > LONG


class _Verdicts:
    """The newest results of the caged process, by request. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, list[Fault]] = OrderedDict()

    def faults(self, specification: Any, feed: Feed, regions: Mapping[str, Any]) -> list[Fault]:
        request = {"specification": specification, "feed": feed.to_json(), "regions": dict(regions)}
        key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()
        with self._lock:
            if key in self._kept:
                return self._kept[key]
        answer = _asked(request)
        with self._lock:
            self._kept[key] = answer
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return answer


_VERDICTS = _Verdicts()


def _asked(request: dict[str, Any]) -> list[Fault]:
    try:
        status, written = ENGINE.ask(CageRequest(__name__, request, SECONDS, MEMORY_BYTES))
    except TookTooLong as error:
        raise refuse(
            "/program", Message("Checking the program took more than {seconds} seconds: make it shorter.", seconds=f"{SECONDS:g}")
        ) from error
    if status != 0:
        raise refuse("/program", Message("Checking the program took too much time or memory: make it shorter."))
    return [fault_from_json(one) for one in json.loads(written)["faults"]]


def run(request: Mapping[str, Any], data: bytes = b"") -> dict[str, Any]:
    """The program's work."""
    try:
        check(request["specification"], Feed.from_json(request["feed"]), request["regions"])
    except Refused as refused:
        return {"faults": [fault.to_json() for fault in list(refused.faults)[:FAULTS]]}
    return {"faults": []}
