"""Kafka against a real broker (KRaft, from its own jars) on loopback. One test: the
broker takes long to start."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from engine.sources.formats import InvalidLine
from engine.sources.live import BATCH_ROWS, Source, SourceUnavailable
from engine.sources.live.kafka import FIELDS, KINDS
from tests.engine.sources.live.brokers import KafkaBroker
from tests.engine.sources.live.loopback import Loopback

pytestmark = pytest.mark.slow
(KAFKA,) = KINDS
END_S = 90.0


class Inner(Loopback):
    """A network that permits no internal addresses."""

    def address(self, host: str, port: int) -> str:
        raise SourceUnavailable(f"{host} is not public")


def settings_for(one: KafkaBroker, **given: Any) -> dict[str, Any]:
    found = {field.name: field.default for field in FIELDS} | {"servers": f"127.0.0.1:{one.port}", "topic": "fleet"} | given
    assert KAFKA.check(found) == {}
    return found


def taken(source: Any, done: Callable[[list[Any]], bool], offset: Any) -> tuple[list[Any], Any]:
    found: list[Any] = []
    end = time.monotonic() + END_S
    for batch in source.batches(offset):
        found += batch.records
        offset = json.loads(json.dumps(batch.offset))
        if done(found):
            return found, offset
        assert time.monotonic() < end, f"{len(found)} records came"
    raise AssertionError


def send(one: KafkaBroker, numbers: range, partition: int | None = None) -> None:
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{one.port}", "log_level": 0})
    while partition is not None and partition not in producer.list_topics("fleet", END_S).topics["fleet"].partitions:
        time.sleep(0.05)
    refused: list[Any] = []
    for n in numbers:
        more = {} if partition is None else {"partition": partition}
        callback = {"on_delivery": lambda error, message: refused.append(error) if error else None}
        producer.produce("fleet", key=f"van{n % 7}", value=json.dumps({"n": n}), **more, **callback)
    assert producer.flush(END_S) == 0 and refused == []


def sizes_until(source: Source, records: int, offset: Any) -> list[int]:
    sizes: list[int] = []
    batches = source.batches(offset)
    while sum(sizes) < records:
        sizes.append(len(next(batches).records))
    return sizes


def test_a_topic_is_read_exactly_once_through_kills_and_new_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = KafkaBroker(tmp_path)
    one.start()
    try:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{one.port}", "log_level": 0})
        admin.create_topics([NewTopic("fleet", 3, 1)])["fleet"].result(END_S)
        with pytest.raises(SourceUnavailable, match="not public"):
            KAFKA.open(settings_for(one), Inner(), "x")
        with closing(KAFKA.open(settings_for(one, topic="nothing"), Loopback(), "x")) as source, pytest.raises(SourceUnavailable, match="nothing"):
            next(source.batches(None))
        send(one, range(100))
        with closing(KAFKA.open(settings_for(one), Loopback(), "fleet")) as source:
            first, offset = taken(source, lambda records: len(records) == 100, None)
        assert sorted(record["n"] for record in first) == list(range(100)) and {record["entity"] for record in first} == {f"van{n}" for n in range(7)}

        # The process dies after storing the offset; a partition is added and the broker killed
        # while the next process reads.
        monkeypatch.setattr("engine.sources.live.kafka.LOOK_S", 0.5)
        send(one, range(100, 150))
        with closing(KAFKA.open(settings_for(one), Loopback(), "fleet")) as source:
            second, offset = taken(source, lambda records: len(records) == 50, offset)
            admin.create_partitions([NewPartitions("fleet", 4)])["fleet"].result(END_S)
            send(one, range(150, 170), partition=3)
            third, offset = taken(source, lambda records: len(records) == 20, offset)
        one.stop(kill=True)
        with (
            monkeypatch.context() as patched,
            pytest.raises(SourceUnavailable),
            closing(KAFKA.open(settings_for(one), Loopback(), "fleet")) as source,
        ):
            patched.setattr("engine.sources.live.kafka.ANSWER_S", 1.0)
            next(source.batches(offset))
        one.start()
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{one.port}", "log_level": 0})
        for payload in (b"\xff", b"[1]", b"", b'{"entity": "own", "n": 170}'):
            producer.produce("fleet", key="k", value=payload)
        producer.produce("fleet", key="k", value=None)
        assert producer.flush(END_S) == 0
        with closing(KAFKA.open(settings_for(one), Loopback(), "fleet")) as source:
            last, offset = taken(source, lambda records: any(not isinstance(record, InvalidLine) for record in records), offset)
        for _ in range(4):
            producer.produce("fleet", key="k", value=b"[" + b"1," * 4_999 + b"1]")
        assert producer.flush(END_S) == 0
        with closing(KAFKA.open(settings_for(one), Loopback(), "fleet")) as source:
            sizes = sizes_until(source, 20_000, offset)
    finally:
        one.stop()
    assert sum(sizes) == 20_000 and max(sizes) <= BATCH_ROWS + 5_000, "few bytes become many records, and come in parts"
    assert sorted(record["n"] for record in [*second, *third]) == list(range(100, 170))
    assert [record["entity"] for record in last if not isinstance(record, InvalidLine)] == ["own"] and len(last) == 4
    assert set(offset) == {"0", "1", "2", "3"} and sum(offset.values()) >= 174


@pytest.mark.parametrize("servers", ["", "host:", "host:99999", ":9092", "a:b"])
def test_invalid_addresses_are_refused(servers: str) -> None:
    assert list(KAFKA.check({"servers": servers})) == ["servers"]
