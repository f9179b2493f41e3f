"""Kafka: answers as records of a topic, one key each.

A batch is a transaction, which fences the process that ran the same connector before: what a
killed process had under way cannot come after what the next one wrote, so that the last
record of each key is right.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from confluent_kafka import KafkaException, Producer

from engine.model.messages import Message
from engine.sinks.live import WANTED, Keyed, SinkKind
from engine.sources.live import Network, Settings, SourceUnavailable
from engine.sources.live.kafka import ANSWER_S, BROKERS, CONNECTION, TOPIC, ClientErrors, check, client_settings, partitions_of, reason

TAKEN_S = 30.0
"""How long the brokers may take to have a batch on all replicas."""
FULL_S = 0.1
CHECK_S = 10.0
"""How often an idle sink asks the brokers for its topic."""
SEQ = "seq"


class KafkaSink:
    """One topic."""

    def __init__(self, settings: Settings, network: Network, identity: str) -> None:
        self._topic, self._network = settings["topic"], network
        self._problems = ClientErrors()
        configuration = client_settings(settings, network, self._problems) | {
            "enable.idempotence": True,
            "delivery.timeout.ms": int(TAKEN_S * 1000),
            "compression.type": "zstd",
            # As Java's clients choose the partition of a key: another producer
            # of theirs finds the same.
            "partitioner": "murmur2_random",
        }
        if identity:
            configuration |= {"transactional.id": f"vedette-{self._topic}-{identity}", "transaction.timeout.ms": int(2 * TAKEN_S * 1000)}
        try:
            self._producer = Producer(configuration)
            self._partitions = len(partitions_of(self._producer, self._topic, network))
            if identity:
                self._producer.init_transactions(ANSWER_S)
            self._checked_at = time.monotonic()
        except KafkaException as error:
            raise SourceUnavailable(Message("Kafka: {error}", error=self._problems.last or reason(error))) from error

    def write(self, records: Sequence[Keyed]) -> None:
        try:
            self._producer.begin_transaction()
            for one in records:
                self._produce(one)
            self._producer.commit_transaction(TAKEN_S)
        except KafkaException as error:
            # The next `init_transactions` aborts an unfinished transaction.
            raise SourceUnavailable(Message("Kafka: {error}", error=self._problems.last or reason(error))) from error

    def _produce(self, one: Keyed) -> None:
        value = None if one.value is None else one.value.encode()
        while True:
            try:
                self._producer.produce(self._topic, value, one.key.encode(), headers={SEQ: str(one.seq)})
                return
            except BufferError:
                self._producer.poll(FULL_S)

    def check(self) -> None:
        if time.monotonic() - self._checked_at > CHECK_S:
            self._partitions = len(partitions_of(self._producer, self._topic, self._network))
            self._checked_at = time.monotonic()

    def description(self) -> str:
        return Message("The topic {topic} can be reached (partitions: {count:,}). Nothing was written.", topic=self._topic, count=self._partitions)

    def close(self) -> None:
        # The client ends with its last reference. Its own `close` would warn where a
        # transaction was broken off.
        self._producer.purge()


KINDS = (
    SinkKind(
        "kafka-answers",
        "Kafka: answers to a topic",
        (BROKERS, TOPIC, *WANTED, *CONNECTION),
        "Each change of an answer at least once, in the order in which it was stored, even when a process dies. "
        "The last record of each key is the answer as it is stored; one without a value says that it was withdrawn.",
        KafkaSink,
        check=check,
    ),
)
