"""How long from ingest's 202 to the WebSocket frame, hop by hop, on a running system.

    python bench/latency.py --url http://127.0.0.1:8000 --user analyst --password ...
        [--feed city] [--probes 120]
        [--pages 100 --account NAME:PASSWORD ...]

A probe car enters and leaves a separate square while the feed's traffic continues. Every step is
one HTTP post and one crossing. Hops:

    post      request sent -> 202 received (the row is durable)
    job       202 -> the job has evaluated the batch (`detected_at`)
    commit    evaluated -> the outbox row is committed (`created_at` of the transaction)
    push      committed -> the frame is here

A step whose row comes late, further behind the other cars' than the feed's lateness, gives no
crossing: such steps are counted and shown, not measured, and more than a tenth of them, or more
than the feed counted, is a failure.

With `--pages` this many pages are open on the feed meanwhile, from another process: each follows
all queries and the whole map, and acknowledges every frame. The memory of the web server's process
is printed too.

Prints one line a hop with p50, p95, p99 and the greatest, and a JSON line for the record.
Everything runs on this machine, so one clock serves all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from typing import Any

import psutil
import websockets

SIDE = 0.002
"""Side of the probe's square, degrees."""
OPENING_SECONDS = 120
APART_SECONDS = 0.4
"""Between the pages that are opened."""
WINDOW_MS = 900_000
"""What a page shows when it is opened."""


@dataclass
class Client:
    """A logged-in session: cookies, CSRF and JSON over urllib."""

    url: str
    jar: CookieJar = field(default_factory=CookieJar)

    def __post_init__(self) -> None:
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))

    def cookie(self, name: str) -> str:
        return next((cookie.value or "" for cookie in self.jar if cookie.name.endswith(name)), "")

    def login(self, user: str, password: str) -> None:
        page = self.opener.open(f"{self.url}/login/").read().decode()
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token, "the log-in page has no CSRF token"
        form = {"username": user, "password": password, "csrfmiddlewaretoken": token[1]}
        request = urllib.request.Request(f"{self.url}/login/", urllib.parse.urlencode(form).encode(), {"Referer": f"{self.url}/login/"})
        self.opener.open(request)
        page = self.opener.open(f"{self.url}/").read().decode()
        found = re.search(r'name="csrf-token" content="([^"]+)"', page)
        assert found, "not logged in: wrong user or password?"
        self.csrf = found[1]

    @property
    def port(self) -> int:
        """Where the server listens on this machine."""
        return int(self.url.rpartition(":")[2])

    def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        given = {"Content-Type": "application/json", "X-CSRFToken": self.csrf, "Referer": f"{self.url}/", **(headers or {})}
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", data, given, method=method)
        while True:
            try:
                with self.opener.open(request) as answer:
                    text = answer.read()
                return json.loads(text) if text else None
            except urllib.error.HTTPError as error:
                if error.code not in (429, 503):
                    error.add_note(error.read().decode(errors="replace"))
                    raise
                time.sleep(float(error.headers.get("Retry-After") or 1))


@dataclass
class Probe:
    """One step of the probe car; times are seconds of the wall clock."""

    t: int
    posted: float
    accepted: float
    detected: float = 0.0
    committed: float = 0.0
    framed: float = 0.0


def square(x: float, y: float) -> dict[str, Any]:
    ring = [[x, y], [x + SIDE, y], [x + SIDE, y + SIDE], [x, y + SIDE], [x, y]]
    return {"type": "Polygon", "coordinates": [ring]}


async def followed(client: Client, feed: str, query: int) -> AsyncIterator[tuple[float, dict[str, Any]]]:
    """Each frame of a page that follows the query, and when it came."""
    address = client.url.replace("http", "ws", 1) + "/ws/live/"
    async with websockets.connect(address, origin=client.url, additional_headers={"Cookie": _cookies(client)}, max_size=None) as socket:
        await socket.send(json.dumps({"type": "subscribe", "feed": feed, "queries": [query], "bbox": None, "since": None, "from": None}))
        async for text in socket:
            now = time.time()
            frame = json.loads(text)
            if frame["type"] == "changes":
                await socket.send(json.dumps({"type": "ack", "feed": feed, "seq": frame["seq"]}))
            yield now, frame


async def frames(client: Client, feed: str, query: int, found: dict[int, float], detected: dict[int, float]) -> None:
    """Records when the crossing with time t came, until the task ends."""
    async for now, frame in followed(client, feed, query):
        for detection in frame.get("detections", ()):
            found.setdefault(detection["start"], now)
            detected.setdefault(detection["start"], detection["detected_at"] / 1000)


@contextmanager
def pages(client: Client, feed: str, count: int, accounts: list[str]) -> Iterator[None]:
    """This many pages that are open on the feed, divided evenly among the accounts."""
    queries = [row["id"] for row in client.call("GET", f"queries/?feed={feed}&page_size=500")["results"]]
    sessions = [_session(client.url, account) for account in accounts] or [_cookies(client)]
    cookies = [sessions[page % len(sessions)] for page in range(count)]
    context = get_context("spawn")
    are_open = context.Event()
    readers = context.Process(target=_read_pages, args=(client.url, cookies, feed, queries, are_open), daemon=True)
    readers.start()
    try:
        began = time.monotonic()
        assert are_open.wait(OPENING_SECONDS), "the pages did not open"
        print(f"{count} pages, {APART_SECONDS:g} s apart: the last had its snapshot after {time.monotonic() - began:.1f} s")
        yield
        assert readers.is_alive(), "the pages broke off"
    finally:
        readers.kill()
        readers.join()


def _session(url: str, account: str) -> str:
    client = Client(url)
    client.login(*account.split(":", 1))
    return _cookies(client)


def _read_pages(url: str, cookies: list[str], feed: str, queries: list[int], are_open: Event) -> None:
    asyncio.run(_all_pages(url, cookies, feed, queries, are_open))


async def _all_pages(url: str, cookies: list[str], feed: str, queries: list[int], are_open: Event) -> None:
    opened = asyncio.Barrier(len(cookies) + 1)
    reading = asyncio.gather(*(_page(url, one, feed, queries, opened, n * APART_SECONDS) for n, one in enumerate(cookies)))
    await opened.wait()
    are_open.set()
    await reading


async def _page(url: str, cookies: str, feed: str, queries: list[int], opened: asyncio.Barrier, after: float) -> None:
    await asyncio.sleep(after)
    waiting: asyncio.Task[int] | None = None
    address = url.replace("http", "ws", 1) + "/ws/live/"
    async with websockets.connect(address, origin=url, additional_headers={"Cookie": cookies}, max_size=None, open_timeout=60) as socket:
        everywhere = [-180, -90, 180, 90]
        begin = round(1000 * time.time()) - WINDOW_MS
        subscribe = json.dumps({"type": "subscribe", "feed": feed, "queries": queries, "bbox": everywhere, "since": None, "from": begin})
        await socket.send(subscribe)
        async for text in socket:
            # Positions need no answer, and are most of the frames.
            if '"changes"' in text[:40]:
                await socket.send(json.dumps({"type": "ack", "feed": feed, "seq": json.loads(text)["seq"]}))
            elif '"resync"' in text[:40]:
                await socket.send(subscribe)
            elif waiting is None and '"snapshot"' in text[:40]:
                waiting = asyncio.create_task(opened.wait())


def _cookies(client: Client) -> str:
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in client.jar)


def memory(port: int) -> dict[str, float]:
    """Megabytes of the process that listens there: resident, and private."""
    holder = next(one.pid for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN and one.laddr.port == port)
    found = psutil.Process(holder).memory_full_info()
    return {"resident": found.rss / 1e6, "own": found.uss / 1e6}


def step(client: Client, feed: str, token: str, inside: bool, x: float, y: float) -> Probe:
    t = time.time_ns() // 1_000_000
    row = {"entity": "latency-probe", "t": t, "x": x + SIDE / 2 + (0 if inside else 2 * SIDE), "y": y + SIDE / 2}
    posted = time.time()
    client.call(
        "POST",
        f"feeds/{feed}/events",
        (json.dumps(row) + "\n").encode(),
        {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {token}"},
    )
    return Probe(t, posted, time.time())


def spread(values: list[float]) -> dict[str, float]:
    """p50, p95, p99 and the greatest, milliseconds."""
    ordered = sorted(1000 * value for value in values)
    cuts = statistics.quantiles(ordered, n=100, method="inclusive")
    return {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": ordered[-1]}


def late_rows(client: Client, feed: str) -> int:
    """How many rows of the feed have been counted as late so far."""
    return int(client.call("GET", f"feeds/{feed}/")["counters"]["late"])


async def measure(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    client = Client(arguments.url)
    client.login(arguments.user, arguments.password)
    feed = client.call("GET", f"feeds/{arguments.feed}/")
    x, y = feed["view"]["center"][0] + 0.3, feed["view"]["center"][1] + 0.3
    document = {"family": "border", "version": 1, "name": "latency probe", "region": square(x, y)}
    query = client.call(
        "POST", "queries/", {"feed": arguments.feed, "name": f"latency probe {time.time():.0f}", "specification": document, "alert_kinds": []}
    )
    token = client.call("POST", "tokens/", {"name": "latency probe", "scopes": ["ingest"]})
    try:
        with pages(client, arguments.feed, arguments.pages, arguments.account) if arguments.pages else nullcontext():
            hops = await probe(client, arguments, query["id"], token["token"], x, y)
            if arguments.pages:
                print(f"web server with {arguments.pages} pages: " + ", ".join(f"{kind} {mb:.0f} MB" for kind, mb in memory(client.port).items()))
            return hops
    finally:
        client.call("DELETE", f"queries/{query['id']}/")
        client.call("DELETE", f"tokens/{token['id']}/")


async def probe(client: Client, arguments: argparse.Namespace, query: int, token: str, x: float, y: float) -> dict[str, dict[str, float]]:
    found: dict[int, float] = {}
    detected: dict[int, float] = {}
    late_before = late_rows(client, arguments.feed)
    listener = asyncio.create_task(frames(client, arguments.feed, query, found, detected))
    await asyncio.sleep(5)
    probes = []
    for n in range(arguments.probes + 1):
        probes.append(await asyncio.to_thread(step, client, arguments.feed, token, n % 2 == 1, x, y))
        await asyncio.sleep(arguments.pause)
    await asyncio.sleep(5)
    listener.cancel()
    probes = probes[1:]  # the first tuple of an entity makes no event
    seen = [probe for probe in probes if probe.t in found]
    missing, rows_late = len(probes) - len(seen), late_rows(client, arguments.feed) - late_before
    # A late row loses two crossings: its own and the one back.
    assert missing <= 2 * rows_late and 10 * missing <= len(probes), f"{missing} of {len(probes)} crossings never came; {rows_late} rows were late"
    if missing:
        print(f"{missing} of {len(probes)} crossings did not come: their rows were further behind the other cars' than the feed's lateness")
    return {
        "post (request to 202)": spread([p.accepted - p.posted for p in seen]),
        "job (202 to evaluated)": spread([detected[p.t] - p.accepted for p in seen]),
        "push (evaluated to frame: commit, outbox, publisher, socket)": spread([found[p.t] - detected[p.t] for p in seen]),
        "202 to frame": spread([found[p.t] - p.accepted for p in seen]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="analyst")
    parser.add_argument("--password", required=True)
    parser.add_argument("--feed", default="city")
    parser.add_argument("--probes", type=int, default=120)
    parser.add_argument("--pages", type=int, default=0, help="pages that are open on the feed meanwhile")
    parser.add_argument("--account", action="append", default=[], metavar="NAME:PASSWORD", help="the user of those pages; may be given again")
    parser.add_argument("--pause", type=float, default=0.37, help="seconds between two probes")
    hops = asyncio.run(measure(parser.parse_args()))
    for hop, figures in hops.items():
        print(f"{hop:62}" + "  ".join(f"{name} {value:7.0f} ms" for name, value in figures.items()))
    print(json.dumps(hops))


if __name__ == "__main__":
    main()
