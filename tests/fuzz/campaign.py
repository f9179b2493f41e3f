"""Sends mutated files and specifications to a running web server and watches it: what it answers, how long it takes, how large it grows."""

from __future__ import annotations

import http.client
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import psutil

from tests.fuzz import corpus
from tests.fuzz.mutation import mutated, mutated_document

WARM = 100
"""Requests before the server's memory is first measured: it has loaded its code by then."""
BOUNDARY = "fuzz5f1c"
SLOW_S = 5.0


@dataclass(frozen=True)
class Sent:
    """One request."""

    path: str
    body: bytes
    headers: dict[str, str]


@dataclass
class Report:
    """What came of the requests of one kind."""

    kind: str
    statuses: Counter[int] = field(default_factory=Counter)
    slowest: float = 0.0
    bad: list[tuple[int, float, Sent]] = field(default_factory=list)
    """Answers that must not be: the server's own faults, none at all, or late ones."""

    def take(self, sent: Sent, status: int, took: float) -> None:
        self.statuses[status] += 1
        self.slowest = max(self.slowest, took)
        if status >= 500 or status == 0 or took > SLOW_S:
            self.bad.append((status, took, sent))

    def __str__(self) -> str:
        told = ", ".join(f"{count:,} x {status}" for status, count in sorted(self.statuses.items()))
        return f"{self.kind}: {sum(self.statuses.values()):,} requests ({told}); slowest {self.slowest:.2f} s; {len(self.bad)} bad"


@dataclass
class Memory:
    """Resident memory of the web process, in bytes."""

    process: psutil.Process
    first: int | None = None
    most: int = 0

    def look(self) -> None:
        now = self.process.memory_info().rss
        self.first = now if self.first is None else self.first
        self.most = max(self.most, now)

    @property
    def growth(self) -> int:
        return self.most - (self.first or self.most)


def kinds() -> dict[str, Callable[[random.Random], Iterator[Sent]]]:
    """What can be sent: a stream of requests for each kind of upload, and for specifications."""
    made: dict[str, Callable[[random.Random], Iterator[Sent]]] = {"specifications": _specifications}
    for name, files in corpus.region_files().items():
        made[name] = lambda chance, files=files: _imports(files, chance)
    for name, (kind, encoding, files) in corpus.bodies().items():
        made[name] = lambda chance, kind=kind, encoding=encoding, files=files: _bodies(kind, encoding, files, chance)
    return made


def _imports(files: list[bytes], chance: random.Random) -> Iterator[Sent]:
    while True:
        data = mutated(chance.choice(files), files, chance)
        given = (("feed", "yard"), ("dry_run", "true"))
        fields = "".join(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in given)
        head = f'{fields}--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n'
        body = head.encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()
        yield Sent("/api/v1/regions/import", body, {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"})


def _bodies(kind: str, encoding: str, files: list[bytes], chance: random.Random) -> Iterator[Sent]:
    headers = {"Content-Type": kind} | ({"Content-Encoding": encoding} if encoding else {})
    while True:
        yield Sent("/api/v1/feeds/yard/events", mutated(chance.choice(files), files, chance), headers)


def _specifications(chance: random.Random) -> Iterator[Sent]:
    known = corpus.specifications()
    calculus = next(one for one in known if one["family"] == "calculus")
    known += [{**calculus, "program": text} for text in corpus.programs()]
    paths = ["/api/v1/queries/check"] * 8 + ["/api/v1/queries/closure", "/api/v1/queries/pattern"]
    while True:
        document = {"feed": "yard", "specification": mutated_document(chance.choice(known), known, chance)}
        yield Sent(chance.choice(paths), json.dumps(document).encode(), {"Content-Type": "application/json"})


@dataclass
class Campaign:
    """A server at a port of this machine, a token that may do everything, and the server's process."""

    port: int
    token: str
    process: psutil.Process
    threads: int = 3

    def run(self, kind: str, count: int, seed: int = 17) -> Report:
        """`count` requests of a kind, from `threads` connections."""
        report = Report(kind)
        shares = [count // self.threads + (n < count % self.threads) for n in range(self.threads)]
        with ThreadPoolExecutor(self.threads) as pool:
            for _ in pool.map(lambda n: self._send(kind, shares[n], seed + n, report), range(self.threads)):
                pass
        return report

    def send(self, sent: Sent) -> int:
        """The status of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", sent.path, sent.body, {**sent.headers, "Authorization": f"Bearer {self.token}"})
            return connection.getresponse().status
        finally:
            connection.close()

    def _send(self, kind: str, count: int, seed: int, report: Report) -> None:
        connection: http.client.HTTPConnection | None = None
        for sent in islice(kinds()[kind](random.Random(f"{kind} {seed}")), count):
            connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            started = time.monotonic()
            try:
                connection.request("POST", sent.path, sent.body, {**sent.headers, "Authorization": f"Bearer {self.token}"})
                answer = connection.getresponse()
                answer.read()
                status, closing = answer.status, answer.will_close
            except (OSError, http.client.HTTPException):
                status, closing = 0, True
            report.take(sent, status, time.monotonic() - started)
            if closing:
                connection.close()
                connection = None


def keep(report: Report, folder: Path) -> None:
    """Writes what was answered badly, to be sent again."""
    folder.mkdir(parents=True, exist_ok=True)
    for n, (status, took, sent) in enumerate(report.bad[:50]):
        (folder / f"{report.kind.replace(' ', '-')}-{n}-{status}-{took:.1f}s").write_bytes(sent.path.encode() + b"\n" + sent.body)


def told(value: Any) -> str:
    return f"{value / 1e6:,.0f} MB"
