"""JSON of web addresses: polled over HTTP (with a JMESPath, and ADS-B receivers as they write it), or sent over a WebSocket.

What an address still shows comes once: the offset holds the contents of the last answer, so a record that was there before is known again.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any
from urllib.parse import SplitResult, urlsplit

import jmespath
from jmespath.exceptions import JMESPathError
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from engine.sources.formats import Broken
from engine.sources.formats.json_text import records_of
from engine.sources.live import BATCH_ROWS, LINGER_S, RECEIVED, Away, Batch, Field, FieldType, Network, Record, Settings, SourceKind
from engine.sources.live.payloads import CSV_COLUMNS, FORMAT, PAYLOAD_BYTES, broken, now_ms, records_in

ANSWER_BYTES = 20_000_000
ANSWER_S, TOTAL_S = 10.0, 30.0
KNOWN = 20_000
"""Records of an answer that are known again in the next; of a larger answer all come each time."""
OK, MOVED = 200, 300
Picked = Callable[[Any], Iterator[Record | Broken]]


class _Pinned(http.client.HTTPConnection):
    """A connection to the address that was checked, under the name that was asked for."""

    def __init__(self, parts: SplitResult, network: Network) -> None:
        super().__init__(parts.hostname or "", port_of(parts), timeout=ANSWER_S)
        self._network, self._secure = network, parts.scheme == "https"
        self.default_port = 443 if self._secure else 80  # left out of the Host header

    def connect(self) -> None:
        connection = self._network.connect(self.host, self.port)
        connection.settimeout(ANSWER_S)
        self.sock = ssl.create_default_context().wrap_socket(connection, server_hostname=self.host) if self._secure else connection


class PollingSource:
    """One address, asked again and again. `picked` finds the records in an answer's JSON."""

    def __init__(self, settings: Settings, network: Network, picked: Picked) -> None:
        self._settings, self._network, self._picked = settings, network, picked
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
            found, known = self._new(self._answer(), known)
            told = sorted(known) if len(known) <= KNOWN else []
            for at in range(0, len(found), BATCH_ROWS):
                part = found[at : at + BATCH_ROWS]
                # Until all is stored, the part that is counts as known, and nothing else: the others come again.
                ends = at + BATCH_ROWS >= len(found)
                offset = told if ends else [*(offset or []), *(_digest(one) for one in part if not isinstance(one, Broken))]
                yield Batch(part, offset, messages=len(part))

    def acknowledge(self, offset: Any) -> None:
        """Nobody waits for it."""

    def close(self) -> None:
        """Each answer has a connection of its own."""

    def _new(self, answer: bytes, known: set[str]) -> tuple[list[Record | Broken], set[str]]:
        """The records that the last answer did not have, and what all of this one are known by."""
        try:
            records = list(self._picked(json.loads(answer)))
        except (ValueError, RecursionError, TypeError, JMESPathError) as error:
            return [broken(f"the answer cannot be read as JSON: {error}", answer)], known
        digests = [_digest(one) for one in records]
        at = now_ms()
        fresh: list[Record | Broken] = [
            one if isinstance(one, Broken) else {**one, RECEIVED: at} for one, digest in zip(records, digests, strict=True) if digest not in known
        ]
        return fresh, set(digests)

    def _answer(self) -> bytes:
        connection = _Pinned(self._parts, self._network)
        headers = {"Accept": "application/json", "User-Agent": "Vedette"}
        if self._settings.get("authorization"):
            headers["Authorization"] = self._settings["authorization"]
        path = (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            if response.status >= MOVED or response.status < OK:
                raise Away(f"The address answers {response.status} {response.reason}.")
            return _read(response)
        except http.client.HTTPException as error:
            raise Away(f"The address does not speak HTTP: {type(error).__name__}") from error
        finally:
            connection.close()


def _read(response: http.client.HTTPResponse) -> bytes:
    """The body, at most so long and within so many seconds: a byte now and then keeps nobody waiting for ever."""
    parts, size, end = [], 0, time.monotonic() + TOTAL_S
    while data := response.read1(65_536):
        parts.append(data)
        size += len(data)
        if size > ANSWER_BYTES:
            raise Away(f"The answer has more than {ANSWER_BYTES // 1_000_000} MB.")
        if time.monotonic() > end:
            raise Away(f"The answer takes longer than {TOTAL_S:g} seconds.")
    return b"".join(parts)


def _digest(record: Record | Broken) -> str:
    """What a record is known by; when it came does not count."""
    content = record.text if isinstance(record, Broken) else {name: value for name, value in record.items() if name != RECEIVED}
    return hashlib.blake2b(json.dumps(content, sort_keys=True, default=str).encode("utf-8", "backslashreplace"), digest_size=6).hexdigest()


def open_polling(settings: Settings, network: Network, identity: str) -> PollingSource:
    """Any address with JSON or GeoJSON."""
    expression = jmespath.compile(settings["path"]) if settings["path"].strip() else None
    return PollingSource(settings, network, lambda document: records_of(expression.search(document) if expression else document))


def open_adsb(settings: Settings, network: Network, identity: str) -> PollingSource:
    """The aircraft of a receiver that runs readsb or dump1090."""
    return PollingSource(settings, network, aircraft)


def aircraft(document: Any) -> Iterator[Record | Broken]:
    """A row for each aircraft whose place is known, at the time at which it was there. Raises ValueError, TypeError."""
    if not isinstance(document, Mapping) or not isinstance(document.get("aircraft"), list):
        raise ValueError("there is no list of aircraft in it")
    now = float(document["now"]) if "now" in document else time.time()
    for one in document["aircraft"]:
        if not isinstance(one, Mapping):
            yield Broken(0, "the aircraft is no object", str(one)[:200])
        elif one.get("lat") is not None and one.get("lon") is not None:
            seen = one.get("seen_pos", one.get("seen", 0))
            age = float(seen) if isinstance(seen, int | float) else 0.0
            name = one.get("flight")
            # To the tenth of a second, in which receivers count: the same position has the same time in each answer.
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
            raise Away(f"The server does not speak WebSocket with us: {error}") from error

    def batches(self, offset: Any) -> Iterator[Batch]:
        settings = self._settings
        while True:
            records: list[Record | Broken] = []
            count, end = 0, time.monotonic() + LINGER_S
            while len(records) < BATCH_ROWS and (left := end - time.monotonic()) > 0:
                try:
                    message = self._connection.recv(timeout=left)
                except TimeoutError:
                    break
                except WebSocketException as error:
                    if records:
                        break
                    raise Away(f"The server ended the connection: {error}") from error
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
            return {"url": f"An address that begins with {schemes[0]}:// or {schemes[1]}://, without user and password."}
        if any(ord(sign) < 32 or ord(sign) > 126 for sign in settings["authorization"]):
            return {"authorization": "Printable ASCII characters alone."}
        try:
            jmespath.compile(settings.get("path") or "@")
        except JMESPathError as error:
            return {"path": f"This is no JMESPath: {error}"[:300]}
        return {}

    return check


URL = Field("url", "Address", required=True)
AUTHORIZATION = Field("authorization", "Header Authorization", FieldType.SECRET, hint="Bearer ..., where the address asks for one.")
SECONDS = Field("seconds", "Ask every ... seconds", FieldType.INTEGER, 10, least=1, most=86_400)
ONCE = "Exactly once for what the address still shows: what was in the last answer is known again. What it shows only while nobody asks is missing."
ADSB_COLUMNS = ("flight", "alt_baro", "alt_geom", "gs", "track", "baro_rate", "squawk", "category", "r")
KINDS = (
    SourceKind(
        "poll",
        "JSON or GeoJSON of an address, asked again and again",
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
        "websocket",
        "WebSocket",
        (
            URL,
            Field("subscribe", "Message to begin with", hint="What the server wants to hear first, if anything."),
            FORMAT,
            CSV_COLUMNS,
            AUTHORIZATION,
        ),
        "The protocol cannot repeat anything: what is sent while the connection or Vedette is away is missing. Nothing is doubled.",
        WebSocketSource,
        check=_checked_url("wss", "ws"),
    ),
)
