"""Kafka: the messages of a topic, JSON or CSV, the key as entity where the message names none.

Offsets of all partitions are in the log with the rows, so each message is stored exactly once.
Partitions are assigned without a consumer group, including those that are added later.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from engine.model.messages import Message
from engine.sources.formats import InvalidLine
from engine.sources.live import BATCH_BYTES, BATCH_ROWS, LINGER_S, Batch, Field, FieldType, Network, Record, Settings, SourceKind, SourceUnavailable
from engine.sources.live.payloads import CSV_COLUMNS, FORMAT, records_in

ANSWER_S, LOOK_S, ALL_S = 10.0, 30.0, 30.0
"""How long a broker may take to answer; how often partitions and brokers are looked at again; how
long all answers about partitions may take."""
DEFAULT_PORT = 9092


class KafkaSource:
    """The partitions of one topic."""

    def __init__(self, settings: Settings, network: Network, identity: str) -> None:
        self._settings, self._network = settings, network
        self._problems = ClientErrors()
        try:
            self._consumer = Consumer(self._configuration(identity))
        except KafkaException as error:
            raise SourceUnavailable(Message("Kafka does not take these settings: {error}", error=reason(error))) from error
        self._next: dict[int, int] = {}
        self._came: deque[Any] = deque()
        self._looked = 0.0

    def _configuration(self, identity: str) -> dict[str, Any]:
        return client_settings(self._settings, self._network, self._problems) | {
            "group.id": f"vedette-{identity or 'test'}",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "queued.max.messages.kbytes": 32_768,
        }

    def batches(self, offset: Any) -> Iterator[Batch]:
        stored = {int(partition): at for partition, at in offset.items()} if isinstance(offset, Mapping) else None
        self._assign(stored)
        while True:
            try:
                # Messages that did not fit into the last batch come first.
                self._came.extend([] if self._came else self._consumer.consume(BATCH_ROWS, LINGER_S))
            except KafkaException as error:
                raise SourceUnavailable(reason(error)) from error
            if not self._came and self._problems.last is not None:
                raise SourceUnavailable(Message("Kafka: {error}", error=self._problems.last))
            self._problems.last = None
            yield self._batch()
            if time.monotonic() - self._looked > LOOK_S:
                self._assign(self._next)

    def acknowledge(self, offset: Any) -> None:
        """Nothing is committed: the log has the offsets."""

    def close(self) -> None:
        self._consumer.close()

    def _assign(self, stored: dict[int, int] | None) -> None:
        """Takes all partitions, from where they are known to be; unknown ones from their beginning
        or, at the very first time, from now."""
        self._looked = time.monotonic()
        partitions = partitions_of(self._consumer, self._settings["topic"], self._network)
        fresh = stored is None and self._settings["start"] == "latest"
        offsets = {one: (stored or {}).get(one) for one in partitions}
        end = time.monotonic() + ALL_S
        for one, at in offsets.items():
            if at is None:
                if time.monotonic() > end:
                    raise SourceUnavailable(
                        Message(
                            "The brokers take longer than {seconds} seconds to tell where the topic's partitions ({count:,}) begin.",
                            seconds=f"{ALL_S:g}",
                            count=len(offsets),
                        )
                    )
                low, high = self._watermarks(one)
                offsets[one] = high if fresh else low
        if stored is not None and offsets.keys() == self._next.keys():
            return
        self._next = {one: at if at is not None else OFFSET_BEGINNING for one, at in offsets.items()}
        # Waiting messages were not counted: they will be delivered again.
        self._came.clear()
        self._consumer.assign([TopicPartition(self._settings["topic"], one, at) for one, at in self._next.items()])

    def _watermarks(self, partition: int) -> tuple[int, int]:
        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(self._settings["topic"], partition), ANSWER_S)
        except KafkaException as error:
            raise SourceUnavailable(Message("The brokers do not answer: {error}", error=reason(error))) from error
        return low, high

    def _batch(self) -> Batch:
        records: list[Record | InvalidLine] = []
        settings, count, size = self._settings, 0, 0
        while self._came and len(records) < BATCH_ROWS and size < BATCH_BYTES:
            message = self._came.popleft()
            if (error := message.error()) is not None:
                if error.code() == KafkaError._AUTO_OFFSET_RESET:
                    raise SourceUnavailable(Message("The topic no longer has the next messages: change the connector to start from the beginning."))
                if error.code() != KafkaError._PARTITION_EOF:
                    raise SourceUnavailable(Message("Kafka: {error}", error=error.str()))
                continue
            count += 1
            self._next[message.partition()] = message.offset() + 1
            if (value := message.value()) is None:
                continue
            size += len(value)
            key = (message.key() or b"").decode("utf-8", "replace")
            known = {"entity": key} if key else {}
            columns = {"key": key, "partition": message.partition(), "offset": message.offset()}
            records += records_in(value, columns, known, form=settings["format"], columns=settings["csv_columns"])
        return Batch(records, {str(one): at for one, at in self._next.items()}, messages=count)


def addresses(servers: str) -> list[tuple[str, int]]:
    """Hosts and ports of `host:port, host:port`. Raises ValueError."""
    hosts = []
    for one in servers.split(","):
        host, colon, port = one.strip().rpartition(":")
        hosts.append((host.strip("[]"), int(port)) if colon else (port, DEFAULT_PORT))
    return hosts


class ClientErrors:
    """The last failure that a client reports outside its calls."""

    def __init__(self) -> None:
        self.last: str | None = None

    def __call__(self, error: KafkaError) -> None:
        """Errors that the client recovers from, such as one of several brokers being unavailable,
        are not failures."""
        if error.fatal() or error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION):
            self.last = error.str()


def client_settings(settings: Settings, network: Network, problems: ClientErrors) -> dict[str, Any]:
    """The settings of consumers and producers. Raises SourceUnavailable for
    brokers that may not be reached."""
    for host, port in addresses(settings["servers"]):
        network.address(host, port)
    options: dict[str, Any] = {
        "bootstrap.servers": settings["servers"],
        "client.id": "vedette",
        "security.protocol": settings["security"],
        "error_cb": problems,
        "socket.connection.setup.timeout.ms": 5_000,
        "log_level": 0,
    }
    if settings["security"].startswith("sasl"):
        options |= {"sasl.mechanism": settings["mechanism"], "sasl.username": settings["user"], "sasl.password": settings["password"]}
    if settings["ca"]:
        options["ssl.ca.pem"] = settings["ca"]
    return options


def partitions_of(client: Consumer | Producer, topic: str, network: Network) -> list[int]:
    """The partitions that a topic has now. Raises SourceUnavailable."""
    try:
        listed = client.list_topics(topic, ANSWER_S)
    except KafkaException as error:
        raise SourceUnavailable(Message("The brokers do not answer: {error}", error=reason(error)), "servers") from error
    # Brokers advertise further addresses, which are checked like those that users type.
    for broker in listed.brokers.values():
        network.address(broker.host, broker.port)
    metadata = listed.topics[topic]
    if metadata.error is not None or not metadata.partitions:
        raise SourceUnavailable(
            Message("The topic {topic} cannot be used: {why}", topic=topic, why=metadata.error.str() if metadata.error else "it has no partitions"),
            "topic",
        )
    return sorted(metadata.partitions)


def reason(error: KafkaException) -> str:
    """The client's error as text."""
    inner = error.args[0] if error.args else error
    return inner.str() if isinstance(inner, KafkaError) else str(inner)


def check(settings: Settings) -> dict[str, str]:
    """The faults of the addresses."""
    try:
        servers = addresses(settings["servers"])
    except ValueError:
        servers = []
    if not servers or not all(host and 0 < port < 65_536 for host, port in servers):
        return {"servers": "Write them as host:9092, separated by commas."}
    return {}


BROKERS = Field("servers", "Brokers", required=True, hint="host:9092, separated by commas.", directs=True)
TOPIC = Field("topic", "Topic", required=True, hint="Its name; it has to exist.")
WITH_USER = ("security", ("sasl_plaintext", "sasl_ssl"))
CONNECTION = (
    Field(
        "security",
        "Connection to the brokers",
        FieldType.CHOICE,
        "plaintext",
        choices=(
            ("plaintext", "not encrypted, without log-in"),
            ("ssl", "encrypted (TLS), without log-in"),
            ("sasl_plaintext", "not encrypted, with user and password"),
            ("sasl_ssl", "encrypted (TLS), with user and password"),
        ),
        directs=True,
    ),
    Field(
        "mechanism",
        "How the user logs in (SASL)",
        FieldType.CHOICE,
        "PLAIN",
        choices=(("PLAIN", "PLAIN"), ("SCRAM-SHA-256", "SCRAM-SHA-256"), ("SCRAM-SHA-512", "SCRAM-SHA-512")),
        directs=True,
        when=WITH_USER,
    ),
    Field("user", "User", directs=True, when=WITH_USER),
    Field("password", "Password", FieldType.SECRET, when=WITH_USER),
    Field(
        "ca",
        "Certificate of the authority (PEM)",
        FieldType.LINES,
        hint="Only where the brokers' certificates are of an authority of your own: from -----BEGIN CERTIFICATE----- on.",
        directs=True,
        when=("security", ("ssl", "sasl_ssl")),
    ),
)
"""The connection settings of brokers, for both directions."""
FIELDS = (
    BROKERS,
    TOPIC,
    FORMAT,
    CSV_COLUMNS,
    Field(
        "start", "Begin with", FieldType.CHOICE, "earliest", choices=(("earliest", "all that the topic keeps"), ("latest", "what comes from now on"))
    ),
    *CONNECTION,
)
KINDS = (
    SourceKind(
        "kafka",
        "Kafka",
        FIELDS,
        "Exactly once: the offsets of all partitions are stored in one step with the rows, even when a process dies.",
        KafkaSource,
        check=check,
    ),
)
