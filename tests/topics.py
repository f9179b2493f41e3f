"""The content of a topic of Kafka, read by a client outside Vedette."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition

POLL_S = 90.0


def messages_of(client: dict[str, Any], topic: str, partitions: int) -> Iterator[Message]:
    """All committed messages of the topic, of each partition in its order."""
    with closing(Consumer({**client, "group.id": "reader", "enable.partition.eof": True, "isolation.level": "read_committed"})) as one:
        one.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        ended = 0
        while ended < partitions:
            message = one.poll(POLL_S)
            assert message is not None
            if message.error() is not None:
                ended += 1
            else:
                yield message
