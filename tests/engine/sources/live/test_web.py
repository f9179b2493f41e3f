"""Polled addresses, ADS-B and WebSockets against real servers on loopback."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from websockets.sync.server import serve

from engine.sources.formats import InvalidLine
from engine.sources.live import SourceUnavailable, web
from engine.sources.live.sbs import KINDS as SBS_KINDS
from engine.sources.live.web import KINDS, aircraft, path_problem
from tests.engine.sources.live.loopback import Loopback

POLL, ADSB, _, SOCKET = KINDS
(SBS,) = SBS_KINDS
END_S = 60.0


class Site:
    """Responds with `body` and `status`; `asked` has the requests."""

    def __init__(self) -> None:
        self.body, self.status, self.asked, self.location = b"{}", 200, list[str](), "http://127.0.0.1:1/"
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(f"{self.path} {self.headers.get('Authorization')}")
                self.send_response(site.status)
                self.send_header("Location", site.location)
                self.send_header("Content-Length", str(len(site.body)))
                self.end_headers()
                self.wfile.write(site.body)

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def site() -> Iterator[Site]:
    one = Site()
    yield one
    one.server.shutdown()
    one.server.server_close()


def settings_for(kind: Any, **given: Any) -> dict[str, Any]:
    found = {field.name: field.default for field in kind.fields} | given
    assert kind.check(found) == {}
    return found


def taken(source: Any, done: Callable[[list[Any]], bool], offset: Any = None) -> tuple[list[Any], Any]:
    found: list[Any] = []
    end = time.monotonic() + END_S
    for batch in source.batches(offset):
        found += batch.records
        offset = batch.offset if batch.records else offset
        if done(found):
            return found, json.loads(json.dumps(offset))
        assert time.monotonic() < end, f"{len(found)} records came"
    raise AssertionError


def test_each_record_of_a_polled_address_comes_once(site: Site) -> None:
    def shown(*numbers: int) -> bytes:
        return json.dumps({"data": {"buses": [{"id": n, "on": n != 3} for n in numbers]}}).encode()

    given = settings_for(POLL, url=f"http://127.0.0.1:{site.port}/v1?a=b", path="data.buses[?on]", seconds=0, authorization="Bearer x")
    site.body = shown(1, 2, 3)
    with closing(POLL.open(given, Loopback(), "")) as source:
        first, offset = taken(source, lambda records: len(records) == 2)
    site.body = shown(2, 4)
    with closing(POLL.open(given, Loopback(), "")) as source:
        then, offset = taken(source, lambda records: bool(records), offset)
        site.body = b"<html>"
        broken, _ = taken(source, lambda records: bool(records), offset)
        site.status = 302
        with pytest.raises(SourceUnavailable, match="302") as refused:
            taken(source, lambda records: False, offset)
    site.status = 401
    with closing(POLL.open(given, Loopback(), "")) as source, pytest.raises(SourceUnavailable, match="401") as unauthorized:
        taken(source, lambda records: False)
    assert (refused.value.about, unauthorized.value.about) == (("url",), ("authorization",))
    assert [one["id"] for one in [*first, *then]] == [1, 2, 4] and abs(first[0]["received"] - time.time() * 1000) < 60_000
    assert isinstance(broken[0], InvalidLine) and site.asked[0] == "/v1?a=b Bearer x"


def test_geojson_is_read_from_an_address(site: Site) -> None:
    feature = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"name": "a"}}
    site.body = json.dumps({"type": "FeatureCollection", "features": [feature, 5]}).encode()
    with closing(POLL.open(settings_for(POLL, url=f"http://127.0.0.1:{site.port}/"), Loopback(), "")) as source:
        found, _ = taken(source, lambda records: len(records) == 2)
    assert (found[0]["lon"], found[0]["lat"], found[0]["name"]) == (1.0, 2.0, "a") and "not an object" in found[1].problem


def test_aircraft_have_the_time_of_their_last_position(site: Site) -> None:
    document = {
        "now": 1700000010.04,
        "aircraft": [{"hex": "3c6444", "flight": "DLH1 ", "lat": 50.0, "lon": 8.0, "seen_pos": 2.5, "gs": 300}, {"hex": "x"}, 7],
    }
    first = next(iter(aircraft(document)))
    assert not isinstance(first, InvalidLine) and (first["flight"], first["time"]) == ("DLH1", 1_700_000_007_500)
    site.body = json.dumps(document).encode()
    with closing(ADSB.open(settings_for(ADSB, url=f"http://127.0.0.1:{site.port}/data/aircraft.json"), Loopback(), "")) as source:
        found, _ = taken(source, lambda records: len(records) == 2)
    assert found[0]["gs"] == 300 and isinstance(found[1], InvalidLine)
    with pytest.raises(ValueError, match="no list"):
        list(aircraft([]))


def test_base_station_lines_are_read() -> None:
    lines = [
        "MSG,1,1,1,4CA2D6,1,2026/01/02,03:04:05.000,2026/01/02,03:04:05.000,RYR1AB,,,,,,,,,,,0",
        "MSG,4,1,1,4CA2D6,1,2026/01/02,03:04:05.000,2026/01/02,03:04:05.000,,,420,180,,,0,,,,,0",
        "MSG,3,1,1,4CA2D6,1,2026/01/02,03:04:05.000,2026/01/02,03:04:05.000,,37000,,,51.45,-1.02,,,0,0,0,0",
        "no line of the format",
    ]
    server = socket.create_server(("127.0.0.1", 0))

    def send() -> None:
        peer, _ = server.accept()
        with peer:
            peer.sendall("\r\n".join(lines).encode())

    threading.Thread(target=send, daemon=True).start()
    with closing(SBS.open({"host": "127.0.0.1", "port": server.getsockname()[1]}, Loopback(), "")) as source:
        found, _ = taken(source, lambda records: len(records) == 2)
    server.close()
    row = found[0]
    assert (row["hex"], row["lat"], row["lon"], row["flight"], row["speed"], row["altitude"]) == (
        "4ca2d6",
        "51.45",
        "-1.02",
        "RYR1AB",
        "420",
        "37000",
    )
    assert isinstance(found[1], InvalidLine)


def test_websocket_messages_are_read() -> None:
    heard: list[Any] = []

    def talk(connection: Any) -> None:
        heard.append((connection.recv(), connection.request.headers["Authorization"]))
        for message in ('{"id": 1}', b'[{"id": 2}]', "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), '{"id": 3}'):
            connection.send(message)

    with serve(talk, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}/live"
        given = settings_for(SOCKET, url=url, subscribe='{"op": "subscribe"}', authorization="Bearer x")
        with closing(SOCKET.open(given, Loopback(), "")) as source:
            found: list[Any] = []
            with pytest.raises(SourceUnavailable, match="ended"):
                for batch in source.batches(None):
                    found += batch.records
    assert [one["id"] for one in found if not isinstance(one, InvalidLine)] == [1, 2, 3] and len(found) == 4
    assert heard == [('{"op": "subscribe"}', "Bearer x")]


def test_a_websocket_follows_no_redirects(site: Site) -> None:
    """The target of a redirection has not been checked."""
    other = Site()
    site.status, site.location = 302, f"ws://127.0.0.1:{other.port}/"
    with pytest.raises(SourceUnavailable), closing(SOCKET.open(settings_for(SOCKET, url=f"ws://127.0.0.1:{site.port}/"), Loopback(), "")):
        pass
    other.server.shutdown()
    other.server.server_close()
    assert len(site.asked) == 1 and other.asked == []


@pytest.mark.parametrize(
    ("kind", "given", "field"),
    [
        (POLL, {"url": "ftp://a/"}, "url"),
        (POLL, {"url": "http://u:p@a/"}, "url"),
        (POLL, {"url": "http://a:99999/"}, "url"),
        (POLL, {"url": "http://a/ b"}, "url"),
        (POLL, {"url": "http://a/", "path": "a["}, "path"),
        (POLL, {"url": "http://a/", "authorization": "a\r\nb"}, "authorization"),
        # Values that grow with each step: two of each, a text between all, a list for each.
        (POLL, {"url": "http://a/", "path": "[@,@][]" + "|[@,@][]" * 30}, "path"),
        (POLL, {"url": "http://a/", "path": "{a:@,b:@}" + "|{a:@,b:@}" * 30}, "path"),
        (POLL, {"url": "http://a/", "path": "[" + ",".join("@" * 31) + "][]"}, "path"),
        (POLL, {"url": "http://a/", "path": "[{a: join(`long`, @)}]"}, "path"),
        (POLL, {"url": "http://a/", "path": "[*].not_null(x, `[1,1,1,1]`)[]"}, "path"),
        (POLL, {"url": "http://a/", "path": "(" * 400 + "a" + ")" * 99}, "path"),
        (POLL, {"url": "http://a/", "path": "a." * 250 + "a"}, "path"),
        (SOCKET, {"url": "https://a/"}, "url"),
    ],
)
def test_invalid_addresses_are_refused(kind: Any, given: dict[str, Any], field: str) -> None:
    assert list(kind.check({one.name: one.default for one in kind.fields} | given)) == [field]


@pytest.mark.parametrize(
    "path", ["data.vehicles[?active]", "a[*].{entity: id, t: time, x: p.lon}", "values(@)[?speed > `2`] | [0:9]", "[?contains(kind, 'tug')]"]
)
def test_common_spellings_of_paths_are_accepted(path: str) -> None:
    assert path_problem(path) == ""


@contextmanager
def talker(first: bytes, again: bytes, every: float) -> Iterator[str]:
    """A server whose response never ends."""
    over, server = threading.Event(), socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            peer, _ = server.accept()
            with peer:
                peer.sendall(first)
                while not over.wait(every):
                    peer.sendall(again)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
    finally:
        over.set()
        server.close()
        thread.join(10)


@pytest.mark.parametrize(
    ("first", "again", "every"),
    [
        (b"HTTP/1.1 200 OK\r\nX-A: ", b"a", 0.05),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.0),
        (b"HTTP/1.1 200 OK\r\n\r\n", b" ", 0.05),
    ],
    ids=["a header that drips", "no end", "a body that drips"],
)
def test_an_endless_response_is_given_up(first: bytes, again: bytes, every: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "TOTAL_S", 0.5)
    with (
        talker(first, again, every) as url,
        closing(POLL.open(settings_for(POLL, url=url), Loopback(), "")) as source,
        pytest.raises(SourceUnavailable, match=r"takes longer than 0\.5 seconds"),
    ):
        next(source.batches(None))


def test_a_response_with_too_many_values_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "ANSWER_VALUES", 100)
    url = f"http://127.0.0.1:{site.port}/"
    site.body = b"[" + b"{}," * 99 + b"{}]"
    with closing(POLL.open(settings_for(POLL, url=url), Loopback(), "")) as source, pytest.raises(SourceUnavailable, match="more than 100 values"):
        list(source.batches(None))
    # An object that occurs once in the response, and many times in the records.
    site.body = json.dumps({"a": {"k": list(range(20))}, "b": [1] * 9}).encode()
    with closing(POLL.open(settings_for(POLL, url=url, path="b[*].{x: @}"), Loopback(), "")) as source:
        assert len(next(source.batches(None)).records) == 9
    with closing(POLL.open(settings_for(POLL, url=url, path="[a,a,a,a,a,a]"), Loopback(), "")) as source:
        (found,) = next(source.batches(None)).records
        assert isinstance(found, InvalidLine) and "more than 100 values" in found.problem
