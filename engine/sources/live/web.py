"""Records of web addresses: polled over HTTP (with a JMESPath, ADS-B receivers and GTFS-realtime as
they write it), or sent over a WebSocket.

A record that an address keeps showing is delivered once: the offset holds the last response, so
repeated records are recognised.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import SplitResult, urlsplit

import jmespath
from jmespath.exceptions import JMESPathError
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from engine.model.messages import Message
from engine.sources.formats import InvalidLine, excerpt
from engine.sources.formats.json_text import records_of
from engine.sources.live import BATCH_ROWS, LINGER_S, RECEIVED, Batch, Field, FieldType, Network, Record, Settings, SourceKind, SourceUnavailable
from engine.sources.live.gtfs import COLUMNS as GTFS_COLUMNS
from engine.sources.live.gtfs import vehicles
from engine.sources.live.payloads import CSV_COLUMNS, FORMAT, PAYLOAD_BYTES, broken, now_ms, records_in

ANSWER_BYTES = 20_000_000
ANSWER_VALUES = 1_000_000
ANSWER_S, TOTAL_S = 10.0, 30.0
KNOWN = 20_000
"""Records of a response that are recognised in the next; of a larger response
all are delivered each time."""
OK, MOVED = 200, 300
NOT_PERMITTED = (401, 403)
Read = Callable[[bytes], Iterator[Record | InvalidLine]]
"""The records of an answer. Raises ValueError, TypeError, RecursionError."""


class _Pinned(http.client.HTTPConnection):
    """A connection to the checked address, under the requested host name."""

    def __init__(self, parts: SplitResult, network: Network) -> None:
        super().__init__(parts.hostname or "", port_of(parts), timeout=ANSWER_S)
        self._network, self._secure = network, parts.scheme == "https"
        self._line: socket.socket | None = None
        self.default_port = 443 if self._secure else 80  # left out of the Host header

    def connect(self) -> None:
        self._line = self.sock = self._network.connect(self.host, self.port)
        self.sock.settimeout(ANSWER_S)
        if self._secure:
            # The handshake afterwards: all that the other side sends is read from a socket that
            # `hang_up` knows.
            wrapped = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
            self._line = self.sock = wrapped
            wrapped.do_handshake()

    def hang_up(self) -> None:
        """Closes the connection from another thread, also during a wait; `sock` is detached while
        the response's body is still being read."""
        if self._line is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._line, socket.SHUT_RDWR)


class PollingSource:
    """One polled address; `read` finds the records in a response."""

    def __init__(self, settings: Settings, network: Network, read: Read) -> None:
        self._settings, self._network, self._read = settings, network, read
        self._parts = urlsplit(settings["url"])
        network.address(self._parts.hostname or "", port_of(self._parts))
        self._due = 0.0

    def batches(self, offset: Any) -> Iterator[Batch]:
        known = set(offset) if isinstance(offset, list) else set()
        while True:
            if (left := self._due - time.monotonic()) > 0:
                time.sleep(min(left, LINGER_S))
                yield Batch()
                continue
            self._due = time.monotonic() + self._settings["seconds"]
            records, known = self._new(self._answer(), known)
            digests = sorted(known) if len(known) <= KNOWN else []
            for at in range(0, len(records), BATCH_ROWS):
                part = records[at : at + BATCH_ROWS]
                # Until all is stored, the part that is counts as known, and nothing
                # else: the others come again.
                ends = at + BATCH_ROWS >= len(records)
                offset = digests if ends else [*(offset or []), *(_digest(one) for one in part if not isinstance(one, InvalidLine))]
                yield Batch(part, offset, messages=len(part))

    def acknowledge(self, offset: Any) -> None:
        """Nothing waits for it."""

    def close(self) -> None:
        """Each request uses a new connection."""

    def _new(self, answer: bytes, known: set[str]) -> tuple[list[Record | InvalidLine], set[str]]:
        """The records that the last response did not have, and the
        identities of all in this one."""
        try:
            records = list(self._read(answer))
            if _values_in(records) > ANSWER_VALUES:
                raise ValueError(f"the records have more than {ANSWER_VALUES:,} values")
        except (ValueError, RecursionError, TypeError, OverflowError, JMESPathError) as error:
            return [broken(Message("the answer cannot be read: {error}", error=error), answer)], known
        digests = [_digest(one) for one in records]
        at = now_ms()
        fresh: list[Record | InvalidLine] = [
            one if isinstance(one, InvalidLine) else {**one, RECEIVED: at}
            for one, digest in zip(records, digests, strict=True)
            if digest not in known
        ]
        return fresh, set(digests)

    def _answer(self) -> bytes:
        connection = _Pinned(self._parts, self._network)
        headers = {"Accept": "application/json, application/x-protobuf", "User-Agent": "Vedette"}
        if self._settings.get("authorization"):
            headers["Authorization"] = self._settings["authorization"]
        path = (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")
        try:
            with _answering_within(TOTAL_S, connection):
                connection.request("GET", path, headers=headers)
                response = connection.getresponse()
                if response.status >= MOVED or response.status < OK:
                    problem = Message("The address answers {status} {reason}.", status=response.status, reason=response.reason)
                    raise SourceUnavailable(problem, "authorization" if response.status in NOT_PERMITTED else "url")
                return _read(response)
        except http.client.HTTPException as error:
            raise SourceUnavailable(Message("The address does not speak HTTP: {error}", error=type(error).__name__), "url") from error
        finally:
            connection.close()


@contextmanager
def _answering_within(seconds: float, connection: _Pinned) -> Iterator[None]:
    """Raises SourceUnavailable when it takes longer altogether: a server that sends a byte now and
    then must not block it forever."""
    late = threading.Event()

    def give_up() -> None:
        late.set()
        connection.hang_up()

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException):
        if not late.is_set():
            raise
    finally:
        timer.cancel()
    if late.is_set():
        raise SourceUnavailable(Message("The answer takes longer than {seconds} seconds.", seconds=f"{seconds:g}"))


def _read(response: http.client.HTTPResponse) -> bytes:
    """The body, if it is not too long and has not too many values: as objects they
    take many times the room."""
    parts, size = [], 0
    while data := response.read1(65_536):
        parts.append(data)
        size += len(data)
        if size > ANSWER_BYTES:
            raise SourceUnavailable(Message("The answer has more than {most} MB.", most=ANSWER_BYTES // 1_000_000))
    answer = b"".join(parts)
    if sum(map(answer.count, (b",", b"[", b"{"))) > ANSWER_VALUES:
        raise SourceUnavailable(Message("The answer has more than {most:,} values.", most=ANSWER_VALUES))
    return answer


def _values_in(records: list[Record | InvalidLine]) -> int:
    """How many values the records have; beyond ANSWER_VALUES it is not counted on."""
    count, waiting = 0, list[Any](records)
    while waiting and count <= ANSWER_VALUES:
        one = waiting.pop()
        count += 1
        if isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return count


def _digest(record: Record | InvalidLine) -> str:
    """The identity of a record, without its time of reception."""
    content = record.text if isinstance(record, InvalidLine) else {name: value for name, value in record.items() if name != RECEIVED}
    return hashlib.blake2b(json.dumps(content, sort_keys=True, default=str).encode("utf-8", "backslashreplace"), digest_size=6).hexdigest()


def open_polling(settings: Settings, network: Network, identity: str) -> PollingSource:
    """Any address with JSON or GeoJSON."""
    expression = jmespath.compile(settings["path"]) if settings["path"].strip() else None

    def read(answer: bytes) -> Iterator[Record | InvalidLine]:
        document = json.loads(answer)
        return records_of(expression.search(document) if expression else document)

    return PollingSource(settings, network, read)


def open_adsb(settings: Settings, network: Network, identity: str) -> PollingSource:
    """The aircraft of a receiver that runs readsb or dump1090."""
    return PollingSource(settings, network, lambda answer: aircraft(json.loads(answer)))


def open_gtfs(settings: Settings, network: Network, identity: str) -> PollingSource:
    """The vehicles of a public transport operator (GTFS-realtime)."""
    return PollingSource(settings, network, vehicles)


def aircraft(document: Any) -> Iterator[Record | InvalidLine]:
    """A row for each aircraft whose place is known, at the time at which it was there.
    Raises ValueError, TypeError."""
    if not isinstance(document, Mapping) or not isinstance(document.get("aircraft"), list):
        raise ValueError("there is no list of aircraft in it")
    now = float(document["now"]) if "now" in document else time.time()
    for one in document["aircraft"]:
        if not isinstance(one, Mapping):
            yield InvalidLine(0, Message("the aircraft is not an object"), excerpt(one))
        elif one.get("lat") is not None and one.get("lon") is not None:
            seen = one.get("seen_pos", one.get("seen", 0))
            age = float(seen) if isinstance(seen, int | float) else 0.0
            name = one.get("flight")
            # To the tenth of a second, in which receivers count: the same position has the
            # same time in each answer.
            yield {**one, "flight": name.strip() if isinstance(name, str) else None, "time": round((now - age) * 10) * 100}


class WebSocketSource:
    """The messages that a server sends."""

    def __init__(self, settings: Settings, network: Network, identity: str) -> None:
        self._settings, self._open = settings, ExitStack()
        parts = urlsplit(settings["url"])
        headers = {"Authorization": settings["authorization"]} if settings["authorization"] else {}
        plain: socket.socket = network.connect(parts.hostname or "", port_of(parts))
        try:
            opened = connect(
                settings["url"],
                sock=plain,
                additional_headers=headers,
                max_size=PAYLOAD_BYTES,
                open_timeout=ANSWER_S,
                proxy=None,
                user_agent_header="Vedette",
            )
            self._connection = self._open.enter_context(opened)
            if settings["subscribe"]:
                self._connection.send(settings["subscribe"])
        except (WebSocketException, TimeoutError) as error:
            self._open.close()
            plain.close()
            raise SourceUnavailable(Message("The server does not accept a WebSocket connection: {error}", error=error), "url") from error

    def batches(self, offset: Any) -> Iterator[Batch]:
        settings = self._settings
        while True:
            records: list[Record | InvalidLine] = []
            count, end = 0, time.monotonic() + LINGER_S
            while len(records) < BATCH_ROWS and (left := end - time.monotonic()) > 0:
                try:
                    message = self._connection.recv(timeout=left)
                except TimeoutError:
                    break
                except WebSocketException as error:
                    if records:
                        break
                    raise SourceUnavailable(Message("The server ended the connection: {error}", error=error)) from error
                count += 1
                payload = message.encode("utf-8", "backslashreplace") if isinstance(message, str) else message
                records += records_in(payload, {}, form=settings["format"], columns=settings["csv_columns"])
            yield Batch(records, messages=count)

    def acknowledge(self, offset: Any) -> None:
        """WebSockets have nothing to acknowledge."""

    def close(self) -> None:
        self._open.close()


def port_of(parts: SplitResult) -> int:
    """The port that an address names, or the usual one."""
    return parts.port or (443 if parts.scheme in ("https", "wss") else 80)


def _checked_url(*schemes: str) -> Callable[[Settings], dict[str, str]]:
    def check(settings: Settings) -> dict[str, str]:
        try:
            parts = urlsplit(settings["url"])
            is_right = parts.scheme in schemes and bool(parts.hostname) and 0 < port_of(parts) < 65_536
        except ValueError:
            is_right = False
        text = settings["url"]
        if not is_right or not text.isascii() or any(ord(sign) <= 32 for sign in text) or "@" in parts.netloc:
            first, second = schemes
            return {
                "url": Message("It must begin with {first}:// or {second}:// and name a host, without user and password.", first=first, second=second)
            }
        if any(ord(sign) < 32 or ord(sign) > 126 for sign in settings["authorization"]):
            return {"authorization": "Only printable ASCII characters."}
        problem = path_problem(settings.get("path") or "@")
        return {"path": problem} if problem else {}

    return check


PATH_CHARACTERS = 500
CHOICES = 30
"""Parts of the one choice of several values that a path may make."""
FUNCTIONS = frozenset(
    {
        "abs", "avg", "ceil", "contains", "ends_with", "floor", "keys", "length", "max", "max_by", "min", "min_by", "not_null", "reverse", "sort",
        "sort_by", "starts_with", "sum", "to_number", "type", "values",
    }
)  # fmt: skip
"""Functions whose result is no larger than their arguments."""


def path_problem(path: str) -> str:
    """Why a JMESPath is refused: it is invalid, or its result might be many times
    as large as the response."""
    if len(path) > PATH_CHARACTERS:
        return f"A path has at most {PATH_CHARACTERS} characters."
    try:
        nodes = list(_nodes(jmespath.compile(path).parsed))
    except (JMESPathError, RecursionError) as error:
        return f"This is no JMESPath: {error}"[:300]
    called = {node["value"] for node in nodes if node["type"] == "function_expression"} - FUNCTIONS
    if called:
        return f"The function {min(called)} is not taken here; these are: {', '.join(sorted(FUNCTIONS))}."
    chosen = [len(node["children"]) for node in nodes if node["type"] in ("multi_select_list", "multi_select_dict")]
    if len(chosen) > 1 or any(count > CHOICES for count in chosen):
        return f"A path chooses several values once, {CHOICES} at most: take all of a record, and choose its columns below."
    if any(node["type"] == "literal" and isinstance(node["value"], list | dict) for node in nodes):
        return "A path compares with numbers and texts, not with lists and objects."
    return ""


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        # The children of a slice are numbers.
        if isinstance(child, dict):
            yield from _nodes(child)


URL = Field("url", "Address", required=True, hint="It begins with https:// or http://.", directs=True)
AUTHORIZATION = Field("authorization", "Header Authorization", FieldType.SECRET, hint="Bearer ..., where the address asks for one.")
SECONDS = Field("seconds", "Ask every ... seconds", FieldType.INTEGER, 10, least=1, most=86_400)
ONCE = (
    "Exactly once for records that the address still shows: those of the last answer are recognised. Records that it shows only between two "
    "polls are missing."
)
ADSB_COLUMNS = ("flight", "alt_baro", "alt_geom", "gs", "track", "baro_rate", "squawk", "category", "r")
KINDS = (
    SourceKind(
        "poll",
        "JSON or GeoJSON from an address, polled",
        (URL, Field("path", "Records (JMESPath)", hint="data.vehicles[?active]; empty: the list in the answer."), SECONDS, AUTHORIZATION),
        ONCE,
        open_polling,
        check=_checked_url("https", "http"),
    ),
    SourceKind(
        "adsb-json",
        "ADS-B: readsb or dump1090 (aircraft.json)",
        (URL, Field("seconds", "Ask every ... seconds", FieldType.INTEGER, 1, least=1, most=3_600), AUTHORIZATION),
        ONCE,
        open_adsb,
        {"entity": ["hex"], "time": ["time"], "time_format": "epoch_ms", "x": "lon", "y": "lat"},
        ADSB_COLUMNS,
        _checked_url("http", "https"),
    ),
    SourceKind(
        "gtfs-realtime",
        "GTFS-realtime: vehicle positions of public transport",
        (URL, SECONDS, AUTHORIZATION),
        ONCE,
        open_gtfs,
        {"entity": ["vehicle"], "time": ["time"], "time_format": "epoch_ms", "x": "lon", "y": "lat"},
        GTFS_COLUMNS,
        _checked_url("https", "http"),
    ),
    SourceKind(
        "websocket",
        "WebSocket",
        (
            replace(URL, hint="It begins with wss:// or ws://."),
            Field("subscribe", "Message to begin with", FieldType.LINES, hint="If the server needs a message first, to subscribe for instance."),
            FORMAT,
            CSV_COLUMNS,
            AUTHORIZATION,
        ),
        "The protocol cannot repeat anything: messages that are sent while the connection or Vedette is down are missing. Nothing is stored twice.",
        WebSocketSource,
        check=_checked_url("wss", "ws"),
    ),
)
