"""Sends mutated files and specifications to a running web server and observes its responses,
their times and its memory."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import psutil

from tests.fuzz import corpus
from tests.fuzz.mutation import mutated, mutated_archive, mutated_document

WARM = 100
"""Requests before the server's memory is first measured, by which time it has loaded its code."""
TUS = {"Tus-Resumable": "1.0.0"}
BOUNDARY = "fuzz5f1c"
SLOW_S = 5.0


@dataclass(frozen=True)
class Sent:
    """One request; if it has a `file` name, its body is first sent by the tus
    protocol, then inspected.

    `forgotten`: the file is then removed. Only some are: it costs a sixth of the time, and does not
    depend on the file's content.
    """

    path: str
    body: bytes
    headers: dict[str, str]
    file: str = ""
    forgotten: bool = True


@dataclass
class Report:
    """The results of the requests of one kind."""

    kind: str
    statuses: Counter[int] = field(default_factory=Counter)
    slowest: float = 0.0
    bad: list[tuple[int, float, Sent]] = field(default_factory=list)
    """Bad responses: server errors, missing or late ones."""
    excused: int = 0
    """Late responses that were in time when the request was repeated alone."""

    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, sent: Sent, status: int, took: float) -> None:
        with self._lock:
            self.statuses[status] += 1
            self.slowest = max(self.slowest, took)
            if status >= 500 or status == 0 or took > SLOW_S:
                self.bad.append((status, took, sent))

    def __str__(self) -> str:
        statuses = ", ".join(f"{count:,} x {status}" for status, count in sorted(self.statuses.items()))
        return f"{self.kind}: {sum(self.statuses.values()):,} requests ({statuses}); slowest {self.slowest:.2f} s; {len(self.bad)} bad" + (
            f"; {self.excused} late beside others, in time alone" if self.excused else ""
        )


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


Maker = Callable[[random.Random, int], Sent]
"""The random content of a request with this number."""
FORGOTTEN = 10
"""Every tenth file is removed again."""
FEEDS = 10
FEED_REQUESTS = 2_000
"""This many requests with rows go to one feed, then to the next: only a job makes a feed's log
small again, and there is no job."""


@cache
def kinds() -> dict[str, Maker]:
    """How random requests are made, for each kind of upload, and for specifications."""
    made: dict[str, Maker] = {"specifications": _specifications()}
    for name, files in corpus.region_files().items():
        made[name] = partial(_import, files)
    for name, (kind, encoding, files) in corpus.bodies().items():
        made[name] = partial(_body, kind, encoding, files)
    for name, (file, files) in corpus.recordings().items():
        made[name] = partial(_recording, file, files)
    return made


@cache
def alone() -> frozenset[str]:
    """Kinds that one process in the cage reads: their requests use one connection."""
    return frozenset({*corpus.region_files(), *corpus.recordings()})


def request(kind: str, number: int, seed: int) -> Sent:
    """The request of a kind with this number, always the same, so that an
    interrupted campaign can continue."""
    return kinds()[kind](random.Random(f"{kind} {seed} {number}"), number)


def feed(number: int) -> str:
    """The feed of the request with this number."""
    return f"yard-{number // FEED_REQUESTS % FEEDS}"


def _import(files: list[bytes], chance: random.Random, number: int) -> Sent:
    data = mutated(chance.choice(files), files, chance)
    given = (("feed", feed(0)), ("dry_run", "true"))
    fields = "".join(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in given)
    head = f'{fields}--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n'
    body = head.encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()
    return Sent("/api/v1/regions/import", body, {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"})


def _body(kind: str, encoding: str, files: list[bytes], chance: random.Random, number: int) -> Sent:
    headers = {"Content-Type": kind} | ({"Content-Encoding": encoding} if encoding else {})
    return Sent(f"/api/v1/feeds/{feed(number)}/events", mutated(chance.choice(files), files, chance), headers)


def _recording(name: str, files: list[bytes], chance: random.Random, number: int) -> Sent:
    chosen = chance.choice(files)
    inside = chosen.startswith(b"PK") and chance.random() < 0.8
    data = mutated_archive(chosen, chance) if inside else mutated(chosen, files, chance)
    return Sent("/api/v1/uploads/", data or b"\n", {}, file=name, forgotten=number % FORGOTTEN == 0)


def _specifications() -> Maker:
    known = corpus.specifications()
    calculus = next(one for one in known if one["family"] == "calculus")
    known += [{**calculus, "program": text} for text in corpus.programs()]
    paths = ["/api/v1/queries/check"] * 8 + ["/api/v1/queries/closure", "/api/v1/queries/pattern"]

    def make(chance: random.Random, number: int) -> Sent:
        document = {"feed": feed(0), "specification": mutated_document(chance.choice(known), known, chance)}
        return Sent(chance.choice(paths), json.dumps(document).encode(), {"Content-Type": "application/json"})

    return make


@dataclass
class Connection:
    """One connection of a client, kept while the server keeps it."""

    port: int
    token: str
    open: http.client.HTTPConnection | None = None

    def send(self, sent: Sent) -> int:
        """The status of one request; 0 without a response. For a file: that of its inspection,
        or of the step that failed."""
        if not sent.file:
            return self._asked("POST", sent.path, sent.body, sent.headers)[0]
        named = {"Upload-Metadata": f"filename {base64.b64encode(sent.file.encode()).decode()}", "Upload-Length": str(len(sent.body))}
        status, address = self._asked("POST", sent.path, b"", {**TUS, **named})
        if status != 201:
            return status
        there = {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
        status, _ = self._asked("PATCH", address, sent.body, {**TUS, **there})
        if status == 204:
            status, _ = self._asked("POST", f"{address}inspection", b"{}", {"Content-Type": "application/json"})
        if not sent.forgotten:
            return status
        forgotten, _ = self._asked("DELETE", address, b"", TUS)
        return status if forgotten == 204 else forgotten

    def _asked(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, str]:
        """The status of a response, and the address that it names."""
        self.open = self.open or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            self.open.request(method, path, body, {**headers, "Authorization": f"Bearer {self.token}"})
            answer = self.open.getresponse()
            answer.read()
            status, address, closing = answer.status, answer.getheader("Location", ""), answer.will_close
        except (OSError, http.client.HTTPException):
            status, address, closing = 0, "", True
        if closing:
            self.close()
        return status, address

    def close(self) -> None:
        if self.open is not None:
            self.open.close()
        self.open = None


@dataclass
class Campaign:
    """A server at a port of this machine, a token with all scopes, and the server's process."""

    port: int
    token: str
    process: psutil.Process
    threads: int = 3

    def run(self, kind: str, numbers: range, seed: int = 17) -> Report:
        """Sends the requests of a kind with these numbers over `threads` connections;
        those of `alone` over one."""
        report = Report(kind)
        threads = 1 if kind in alone() else self.threads
        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(lambda n: self._send(kind, numbers[n::threads], seed, report), range(threads)):
                pass
        return report

    def send(self, sent: Sent) -> int:
        """The status of one request."""
        connection = Connection(self.port, self.token)
        try:
            return connection.send(sent)
        finally:
            connection.close()

    def judge_late(self, report: Report) -> None:
        """Repeats requests with late responses alone: the load of the machine
        may have been the reason.

        What takes no longer than SLOW_S of processor time, server and children together, is
        excused, and counted as such.
        """
        for status, took, sent in list(report.bad):
            if 0 < status < 500:
                before = self.cpu_seconds()
                started = time.monotonic()
                again = self.send(sent)
                alone, spent = time.monotonic() - started, self.cpu_seconds() - before
                if 0 < again < 500 and min(alone, spent) <= SLOW_S:
                    report.bad.remove((status, took, sent))
                    report.excused += 1

    def cpu_seconds(self) -> float:
        """Processor time of the server and of its children so far."""
        with self.process.oneshot():
            spent = self.process.cpu_times()
        total = spent.user + spent.system + spent.children_user + spent.children_system
        for child in self.process.children(recursive=True):
            with suppress(psutil.Error):
                times = child.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def _send(self, kind: str, numbers: range, seed: int, report: Report) -> None:
        connection = Connection(self.port, self.token)
        for number in numbers:
            sent = request(kind, number, seed)
            started = time.monotonic()
            status = connection.send(sent)
            report.take(sent, status, time.monotonic() - started)
        connection.close()


def keep(report: Report, folder: Path) -> None:
    """Stores requests with bad responses, to be sent again."""
    folder.mkdir(parents=True, exist_ok=True)
    for status, took, sent in report.bad[:50]:
        name = f"{report.kind.replace(' ', '-')}-{hashlib.sha256(sent.body).hexdigest()[:8]}-{status}-{took:.1f}s"
        (folder / name).write_bytes(sent.path.encode() + b"\n" + sent.body)


def as_text(value: Any) -> str:
    return f"{value / 1e6:,.0f} MB"
