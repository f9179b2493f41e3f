"""Messages to a topic of Kafka: a message is sent when all in-sync replicas have it. The address is
`kafka[s]://[user:password@]host[:port][,host...]/topic`.

At least once: the key of a message, its `id`, stays the same over all attempts, so a
compacted topic keeps one, and within an attempt the brokers themselves drop what the client
repeats (an idempotent producer).
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from confluent_kafka import KafkaError, KafkaException, Producer

from engine.model.messages import Message, message_of, untranslated
from webapp.alerts.models import Delivery
from webapp.alerts.reasons import LONGEST_REASON, reason_of
from webapp.alerts.webhooks import Answer
from webapp.config.outside import RefusedAddress, check_host, is_named

LONGEST = timedelta(seconds=30)
ANSWER_S, TAKEN_S = 8.0, 12.0
SCHEMES = {"kafka": "plaintext", "kafkas": "ssl"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_PORT, LEAST_PORT = 9092, 1024
"""Below it are the ports of other protocols."""
MOST_BROKERS, TOPIC_LENGTH = 10, 249
TAKEN = 200


class _Place:
    """The parts of an address. Raises RefusedAddress."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        login, _, servers = parts.netloc.rpartition("@")
        user, _, password = login.partition(":")
        self.topic, self.user, self.password = unquote(parts.path.removeprefix("/")), unquote(user), unquote(password)
        self.mechanism = parse_qs(parts.query).get("mechanism", ["PLAIN"])[0]
        if parts.scheme not in SCHEMES or not servers:
            raise RefusedAddress(Message("As kafkas://user:password@broker.example.org:9093/alerts, other brokers after commas."))
        if not 0 < len(self.topic) <= TOPIC_LENGTH or not all(sign.isascii() and (sign.isalnum() or sign in "._-") for sign in self.topic):
            raise RefusedAddress(Message("The path is the topic: 1 to {most} letters, digits, points, - and _.", most=TOPIC_LENGTH))
        if self.mechanism not in MECHANISMS:
            raise RefusedAddress(Message("?mechanism= is one of {known}.", known=", ".join(MECHANISMS)))
        self.security = f"sasl_{SCHEMES[parts.scheme]}" if user else SCHEMES[parts.scheme]
        self.brokers = [_host_and_port(one) for one in servers.split(",")]
        if len(self.brokers) > MOST_BROKERS:
            raise RefusedAddress(Message("{most} brokers at most: the client finds the others.", most=MOST_BROKERS))

    def settings(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "bootstrap.servers": ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.brokers),
            "client.id": "vedette",
            "security.protocol": self.security,
            "enable.idempotence": True,
            "delivery.timeout.ms": int(TAKEN_S * 1000),
            "socket.connection.setup.timeout.ms": 5_000,
            "log_level": 0,
        }
        return options | ({"sasl.mechanism": self.mechanism, "sasl.username": self.user, "sasl.password": self.password} if self.user else {})


def refuse(attributes: Mapping[str, Any]) -> dict[str, Message]:
    """The address names brokers and one topic."""
    try:
        for host, _ in _Place(attributes.get("url") or "").brokers:
            check_host(host)
    except ValueError as error:
        return {"url": message_of(error)}
    return {}


def send(delivery: Delivery, now: datetime) -> Answer:
    """Writes the message and waits until the topic has it."""
    try:
        place = _Place(delivery.channel.url)
        _check(place.brokers)
        return _produce(place, delivery)
    except (OSError, RefusedAddress) as error:
        return Answer(None, reason_of(error))
    except KafkaException as error:
        return Answer(None, _kafka_error(_text_of(error.args[0])))


def _produce(place: _Place, delivery: Delivery) -> Answer:
    problems = list[str]()
    producer = Producer({**place.settings(), "error_cb": lambda error: problems.append(_text_of(error))})
    metadata = producer.list_topics(place.topic, ANSWER_S)
    # Brokers advertise further addresses, which are checked like those that users type.
    _check([(broker.host, broker.port) for broker in metadata.brokers.values()])
    topic = metadata.topics[place.topic]
    if topic.error is not None or not topic.partitions:
        why = untranslated(_text_of(topic.error)) if topic.error else Message("it has no partitions")
        return Answer(None, Message("The topic {topic} cannot be written: {why}", topic=place.topic, why=why))
    answered, refused = threading.Event(), list[str]()

    def settled(error: KafkaError | None, _message: Any) -> None:
        refused.extend([_text_of(error)] if error is not None else [])
        answered.set()

    key = str(delivery.webhook_id)
    body = json.dumps({"id": key, **json.loads(delivery.body)})
    producer.produce(place.topic, key=key, value=body, headers={"webhook-id": key}, on_delivery=settled)
    producer.flush(TAKEN_S)
    if not answered.is_set():
        late = Message("the brokers did not acknowledge the message within {seconds} s", seconds=f"{TAKEN_S:g}")
        refused.append(problems[-1] if problems else late)
    return Answer(None, _kafka_error(refused[0])) if refused else Answer(TAKEN)


def _kafka_error(why: str) -> Message:
    return Message("Sending to Kafka failed: {why}", why=why if isinstance(why, Message) else why[:LONGEST_REASON])


def _check(brokers: list[tuple[str, int]]) -> None:
    """Raises RefusedAddress unless all of them are permitted, OSError for an unknown one."""
    for host, port in brokers:
        for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP):
            if not is_named(str(address[0])) and port < LEAST_PORT:
                raise RefusedAddress(Message("Port {port} is not a port of brokers.", port=port))


def _host_and_port(text: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port or DEFAULT_PORT
    except ValueError as error:
        raise RefusedAddress(Message("{found} is not a broker: write broker.example.org:9092.", found=repr(text[:60]))) from error
    if not host or any(ord(sign) <= 32 or ord(sign) > 126 for sign in host):
        raise RefusedAddress(Message("{found} is not a broker: write broker.example.org:9092.", found=repr(text[:60])))
    return host, port


def _text_of(error: Any) -> str:
    return error.str() if isinstance(error, KafkaError) else str(error)
