"""MQTT 3.1.1 and 5: messages of a broker, JSON or CSV, with topics whose levels give entity,
event or any other column.

With quality 1 a message is acknowledged when its rows are stored. One that was stored but not
acknowledged before this process died comes again, marked as a repetition and under the same packet
number: the offset holds the numbers and contents of the last messages, so it is known again.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
import threading
import time
import zlib
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from engine.model.messages import Message
from engine.sources.formats import InvalidLine
from engine.sources.live import (
    BATCH_BYTES,
    BATCH_ROWS,
    HOST,
    LINGER_S,
    Batch,
    Field,
    FieldType,
    Network,
    Record,
    Settings,
    SourceKind,
    SourceUnavailable,
)
from engine.sources.live.payloads import CSV_COLUMNS, FORMAT, PAYLOAD_BYTES, records_in
from engine.sources.values import Cell

CONNECT_S, KEEP_ALIVE_S = 10.0, 30
SESSION_S = 7 * 86_400
"""How long a broker keeps messages while the connector is disconnected (MQTT 5; in 3.1.1 the broker
decides)."""
IN_FLIGHT = 2_000
"""Messages that a broker of MQTT 5 sends before the first of them is acknowledged."""
RECEIVE_BYTES, PACKETS_AT_ONCE = 65_536, 500
MOMENT_S = 0.02
WAITING = 50_000
"""Messages that wait to be stored; then nothing is read, and the broker waits."""
WAITING_BYTES = 64 << 20
PACKET_BYTES = 4 * PAYLOAD_BYTES
"""The connection to a broker that announces a longer packet is closed: the client
would allocate all of it."""
LEVEL = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.]{0,99})\}")
PUBLISH, PUBACK = 0x30, 0x40


class _Message(NamedTuple):
    """A published message. `mid` numbers it if it is to be acknowledged (`qos` 1);
    `dup`: it may be a repetition."""

    topic: str
    payload: bytes
    mid: int
    qos: int
    dup: bool


class _Buffered:
    """A socket that reads much at once: the client reads single bytes, and each call
    would let other threads run."""

    def __init__(self, inner: Any) -> None:
        self._inner, self._data, self._at = inner, b"", 0
        self.refused = ""

    def recv(self, size: int) -> bytes:
        if size > PACKET_BYTES:
            self.refused = Message("The broker sends a packet of {size:,} bytes; at most {most:,} are taken.", size=size, most=PACKET_BYTES)
            raise ConnectionAbortedError(self.refused)
        if self._at == len(self._data):
            self._data, self._at = self._inner.recv(RECEIVE_BYTES), 0
        part = self._data[self._at : self._at + size]
        self._at += len(part)
        return part

    def pending(self) -> int:
        """Bytes that can be read although the socket has none."""
        return len(self._data) - self._at + (self._inner.pending() if isinstance(self._inner, ssl.SSLSocket) else 0)

    def messages(self, *, is_5: bool) -> list[_Message]:
        """Takes complete messages from the front. Other or malformed
        packets are left to the client."""
        messages = []
        while (packet := _whole_publish(self._data, self._at)) is not None:
            flags, begin, end = packet
            if (message := _message_in(flags, self._data[begin:end], is_5=is_5)) is None:
                break
            messages.append(message)
            self._at = end
        return messages

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _whole_publish(data: bytes, at: int) -> tuple[int, int, int] | None:
    """(flags, begin and end of the body) of the PUBLISH packet of quality 0 or 1 that begins at
    `at`; null if there is no complete one."""
    if at >= len(data) or data[at] & 0xF0 != PUBLISH or data[at] & 0x04:
        return None
    size = _size(data, at + 1)
    if size is None or size[1] + size[0] > len(data):
        return None
    return data[at] & 0x0F, size[1], size[1] + size[0]


def _size(data: bytes, at: int) -> tuple[int, int] | None:
    """(number, where it ends) of the variable byte integer at `at`."""
    value = 0
    for place, byte in enumerate(data[at : at + 4]):
        value |= (byte & 0x7F) << 7 * place
        if not byte & 0x80:
            return value, at + place + 1
    return None


def _message_in(flags: int, body: bytes, *, is_5: bool) -> _Message | None:
    """The message of a PUBLISH packet; null where the client has to decide."""
    quality, at = flags >> 1 & 3, 2 + int.from_bytes(body[:2], "big")
    topic, mid = body[2:at], 0
    if quality:
        mid, at = int.from_bytes(body[at : at + 2], "big"), at + 2
    if is_5:
        properties = _size(body, at)
        if properties is None:
            return None
        at = properties[1] + properties[0]
    if not topic or at > len(body):
        return None
    return _Message(topic.decode("utf-8", "replace"), body[at:], mid, quality, bool(flags & 0x08))


def _room(message: _Message) -> int:
    """Bytes of a waiting message: a topic may be as long as a payload."""
    return len(message.payload) + len(message.topic)


class NetworkClient(paho.Client):
    """Connects to the checked address, under the requested host name."""

    network: Network

    def _create_socket_connection(self) -> socket.socket:
        return self.network.connect(self._host, self._port)


def secure(client: paho.Client, settings: Settings) -> None:
    """Log-in and encryption according to the settings of `ACCESS`. Raises SourceUnavailable."""
    if settings["user"]:
        client.username_pw_set(settings["user"], settings["password"] or None)
    if settings["tls"]:
        context = ssl.create_default_context()
        if settings["ca"]:
            try:
                context.load_verify_locations(cadata=settings["ca"])
            except ssl.SSLError as error:
                raise SourceUnavailable(Message("The certificate of the authority cannot be read: {error}", error=error), "ca") from error
        client.tls_set_context(context)


def refused_for(reason: Any) -> tuple[str, ...]:
    """The setting because of which a broker refuses the connection, if its reason shows that."""
    return {"Bad user name or password": ("user",), "Not authorized": ("user",), "Client identifier not valid": ("client_id",)}.get(str(reason), ())


class _Client(NetworkClient):
    """Reads all packets that have arrived before it waits again.

    A packet for each call of select, as it is else, costs more than all the rest. Of 185
    microseconds that a message took, 115 were spent where the client takes packets apart byte by
    byte: messages are taken out of the buffer as a whole, all other packets are the client's.
    """

    took: Callable[[Sequence[_Message]], None]
    refused = ""

    def _create_socket(self) -> Any:
        return _Buffered(super()._create_socket())

    def _sock_close(self) -> None:
        self.refused = getattr(self._sock, "refused", "") or self.refused
        super()._sock_close()

    def loop_read(self, max_packets: int = 1) -> Any:
        # Bounded: between two calls the client sends its keep-alive.
        for _ in range(PACKETS_AT_ONCE):
            result = super().loop_read(max_packets)
            if result != paho.MQTT_ERR_SUCCESS or not isinstance(self._sock, _Buffered):
                break
            if not self._in_packet["command"] and (messages := self._sock.messages(is_5=self._protocol == MQTTProtocolVersion.MQTTv5)):
                self.took(messages)
            if not self._sock.pending():
                break
        return result

    def acknowledge(self, mids: Sequence[int]) -> None:
        """Acknowledges the messages with these numbers, in one piece."""
        if mids:
            self._packet_queue(PUBACK, b"".join(struct.pack("!BBH", PUBACK, 2, mid) for mid in mids), 0, 1)


class MqttSource:
    """The messages of one session."""

    def __init__(self, settings: Settings, network: Network, identity: str) -> None:
        self._settings = settings
        self._topic = TopicTemplate(settings["topic"])
        self._waiting: deque[_Message] = deque()
        self._waiting_bytes, self._counting = 0, threading.Lock()
        self._problem: str | None = None
        self._about: tuple[str, ...] = ()
        self._over = threading.Event()
        self._ready = threading.Event()
        self._stored: OrderedDict[str, int] = OrderedDict()
        self._unacknowledged: list[int] = []
        self._is_trial = not identity
        self._client = self._made(identity)
        self._client.network, self._client.took = network, self._took
        self._connect()

    # -- connecting --------------------------------------------------------------------------------

    def _made(self, identity: str) -> _Client:
        settings = self._settings
        self._is_5 = settings["version"] == "5"
        keeps = not self._is_trial and settings["quality"] == "1"
        options: dict[str, Any] = {} if self._is_5 else {"clean_session": not keeps}
        client = _Client(
            CallbackAPIVersion.VERSION2,
            client_id=settings["client_id"] if keeps and settings["client_id"] else f"vedette-{identity}" if keeps else "",
            protocol=MQTTProtocolVersion.MQTTv5 if self._is_5 else MQTTProtocolVersion.MQTTv311,
            reconnect_on_failure=False,
            manual_ack=True,
            **options,
        )
        secure(client, settings)
        client.on_connect, client.on_disconnect, client.on_message = self._connected, self._disconnected, self._came
        client.on_subscribe = self._subscribed
        return client

    def _connect(self) -> None:
        settings = self._settings
        more: dict[str, Any] = {}
        if self._is_5:
            properties: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.ReceiveMaximum = IN_FLIGHT
            keeps = not self._is_trial and settings["quality"] == "1"
            properties.SessionExpiryInterval = SESSION_S if keeps else 0
            more = {"clean_start": not keeps, "properties": properties}
        try:
            self._client.connect(settings["host"], settings["port"], KEEP_ALIVE_S, **more)
        except (OSError, ValueError) as error:
            raise SourceUnavailable(Message("The broker cannot be reached: {error}", error=error)) from error
        self._client.loop_start()
        if not self._ready.wait(CONNECT_S) and self._problem is None:
            self._problem = Message("The broker did not answer.")
        if self._problem is not None:
            problem, about = self._problem, self._about
            self.close()
            raise SourceUnavailable(problem, *about)

    def _connected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._problem, self._about = Message("The broker refuses the connection: {reason}", reason=reason), refused_for(reason)
            self._ready.set()
            return
        quality = int(self._settings["quality"])
        group = self._settings["share"].strip()
        filters = [f"$share/{group}/{one}" if group else one for one in self._topic.filters]
        if self._is_5:
            client.subscribe([(one, SubscribeOptions(qos=quality)) for one in filters])
        else:
            client.subscribe([(one, quality) for one in filters])

    def _subscribed(self, client: Any, data: Any, mid: int, reasons: Any, properties: Any) -> None:
        failed = [str(one) for one in reasons if one.is_failure]
        if failed:
            self._problem, self._about = Message("The broker refuses the subscription: {reason}", reason=failed[0]), ("topic",)
        self._ready.set()

    def _disconnected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if self._problem is None and not self._over.is_set():
            ended = Message("The broker ended the connection: {reason}", reason=reason)
            self._problem = client.refused or (Message("The broker ended the connection.") if reason == "Unspecified error" else ended)
        self._ready.set()

    def _came(self, client: Any, data: Any, message: paho.MQTTMessage) -> None:
        self._took([_Message(message.topic, bytes(message.payload), message.mid, message.qos, message.dup)])

    def _took(self, messages: Sequence[_Message]) -> None:
        """In the client's own thread: while the queue is full nothing more is read from the
        broker."""
        while (len(self._waiting) >= WAITING or self._waiting_bytes > WAITING_BYTES) and not self._over.wait(MOMENT_S):
            pass
        with self._counting:
            self._waiting_bytes += sum(map(_room, messages))
        self._waiting.extend(messages)

    # -- the contract ------------------------------------------------------------------------------

    def batches(self, offset: Any) -> Iterator[Batch]:
        self._stored = OrderedDict(offset.items() if isinstance(offset, Mapping) else ())
        while True:
            self._linger()
            if not self._waiting and self._problem is not None:
                raise SourceUnavailable(self._problem)
            yield self._batch()

    def acknowledge(self, offset: Any) -> None:
        self._client.acknowledge(self._unacknowledged)
        self._unacknowledged = []

    def close(self) -> None:
        self._over.set()
        self._client.disconnect()
        self._client.loop_stop()

    def _linger(self) -> None:
        """Waits for messages for LINGER_S. Polls: waking a thread for each message
        costs more than the message."""
        end, before = time.monotonic() + LINGER_S, 0
        while (count := len(self._waiting)) < BATCH_ROWS and self._waiting_bytes < BATCH_BYTES and time.monotonic() < end:
            if count and count == before and self._waiting[-1].qos:
                # The broker sends no more than it may before something is acknowledged:
                # waiting would only cost time.
                break
            before = count
            time.sleep(MOMENT_S)

    def _batch(self) -> Batch:
        """As much of what waits as memory has room for: a message may hold thousands of records,
        and JSON takes many times its bytes."""
        records: list[Record | InvalidLine] = []
        settings, count, size = self._settings, 0, 0
        while self._waiting and count < BATCH_ROWS and len(records) < BATCH_ROWS and size < BATCH_BYTES:
            message = self._waiting.popleft()
            count, size = count + 1, size + _room(message)
            if message.qos:
                self._unacknowledged.append(message.mid)
                if self._was_stored(message):
                    continue
            columns = {"topic": message.topic, **self._topic.columns(message.topic)}
            records += records_in(message.payload, columns, form=settings["format"], columns=settings["csv_columns"])
        with self._counting:
            self._waiting_bytes -= size
        offset = dict(self._stored) if int(settings["quality"]) else None
        return Batch(records, offset, messages=count)

    def _was_stored(self, message: _Message) -> bool:
        """Whether the message is a repetition of one that is stored. Notes it otherwise."""
        number, content = str(message.mid), zlib.crc32(message.payload, zlib.crc32(message.topic.encode()))
        if message.dup and self._stored.get(number) == content:
            return True
        self._stored[number] = content
        self._stored.move_to_end(number)
        while len(self._stored) > 2 * IN_FLIGHT:
            self._stored.popitem(last=False)
        return False


class TopicTemplate:
    """Topics such as `fleet/{entity}/{event}`, one a line: what to subscribe to, and which level is
    which column. `+` and `#` are MQTT's own.

    >>> template = TopicTemplate("fleet/{entity}/+/{event}\\nyard/#")
    >>> template.filters
    ['fleet/+/+/+', 'yard/#']
    >>> template.columns("fleet/van7/x/left")
    {'entity': 'van7', 'event': 'left'}
    """

    def __init__(self, text: str) -> None:
        topics = [line.strip() for line in re.split(r"[\n,]", text) if line.strip()]
        self._levels = [topic.split("/") for topic in topics]
        self.filters = ["/".join("+" if LEVEL.fullmatch(level) else level for level in levels) for levels in self._levels]

    def columns(self, topic: str) -> dict[str, str]:
        """The columns from a topic's levels, by the first template that matches."""
        parts = topic.split("/")
        for levels in self._levels:
            if _fits(levels, parts):
                return {level_name[1]: Cell(value) for level, value in zip(levels, parts, strict=False) if (level_name := LEVEL.fullmatch(level))}
        return {}


def _fits(levels: list[str], parts: list[str]) -> bool:
    open_ended = levels[-1] == "#"
    fixed = levels[:-1] if open_ended else levels
    if len(parts) < len(fixed) or (len(parts) > len(fixed) and not open_ended):
        return False
    return all(level == "+" or LEVEL.fullmatch(level) or level == value for level, value in zip(fixed, parts, strict=False))


def check(settings: Settings) -> dict[str, str]:
    """The faults of the topics, and the like."""
    template = TopicTemplate(settings["topic"])
    if not template.filters:
        return {"topic": "Name a topic, such as fleet/{entity}/position."}
    for one in template.filters:
        levels = one.split("/")
        if any(("#" in level and (level != "#" or at + 1 < len(levels))) or ("+" in level and level != "+") for at, level in enumerate(levels)):
            return {"topic": Message("{topic}: + and # stand for whole levels, and # for the last one.", topic=one[:200])}
        if "{" in one or "}" in one or len(one.encode()) > 60_000:
            return {"topic": Message("{topic}: a name in braces stands for a whole level: letters, digits and _.", topic=one[:200])}
    if settings["share"] and (settings["version"] != "5" or any(sign in settings["share"] for sign in "/+#")):
        return {"share": "Shared subscriptions are of MQTT 5; the group is one word without /, + and #."}
    return {}


PORT = Field("port", "Port", FieldType.INTEGER, 1883, required=True, least=1, most=65_535, hint="Usually 1883, with TLS 8883.", directs=True)
VERSION = Field("version", "Version of MQTT", FieldType.CHOICE, "5", choices=(("5", "5"), ("3", "3.1.1")))
ACCESS = (
    Field("user", "User", directs=True),
    Field("password", "Password", FieldType.SECRET),
    Field("tls", "Encrypted (TLS)", FieldType.BOOLEAN, False, directs=True),
    Field(
        "ca",
        "Certificate of the authority (PEM)",
        FieldType.LINES,
        hint="Only where the broker's certificate is of an authority of your own: from -----BEGIN CERTIFICATE----- on.",
        directs=True,
        when=("tls", (True,)),
    ),
)
FIELDS = (
    HOST,
    PORT,
    Field(
        "topic",
        "Topics",
        FieldType.LINES,
        required=True,
        hint="One per line, such as fleet/{entity}/{event}: levels in braces become columns; + stands for any level, # for all the rest.",
    ),
    FORMAT,
    CSV_COLUMNS,
    Field("quality", "Quality of service (QoS)", FieldType.CHOICE, "1", choices=(("1", "1: repeated until stored"), ("0", "0: sent once"))),
    VERSION,
    *ACCESS,
    Field(
        "share",
        "Group of a shared subscription",
        hint="Empty: none. Each message goes to only one of the subscribers that name the same group.",
        when=("version", ("5",)),
    ),
    Field("client_id", "Client id", hint="If the broker knows its clients by their ids. Empty: an id that stays the same.", when=("quality", ("1",))),
)
KINDS = (
    SourceKind(
        "mqtt",
        "MQTT",
        FIELDS,
        "QoS 1: each message is stored exactly once as long as the broker keeps the session (MQTT 5: a week). QoS 0: messages that are "
        "sent while the connection or Vedette is down are missing; nothing is stored twice.",
        MqttSource,
        check=check,
    ),
)
