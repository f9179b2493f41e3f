"""The texts of protocols in the reader's language: titles, fields, guarantees. The engine
has them in English only."""

from __future__ import annotations

from django.utils.translation import gettext, gettext_noop

TEXTS = (
    gettext_noop("0: sent once"),
    gettext_noop("1: repeated until stored"),
    gettext_noop("3.1.1"),
    gettext_noop("5"),
    gettext_noop("A name or an address."),
    gettext_noop("ADS-B from a receiver (SBS or BaseStation over TCP)"),
    gettext_noop("ADS-B: readsb or dump1090 (aircraft.json)"),
    gettext_noop("AIS cannot repeat anything: messages that are sent while the connection or Vedette is down are missing. Nothing is stored twice."),
    gettext_noop(
        "AIS cannot repeat anything: messages that are sent while the connection or Vedette is down are missing. Nothing is stored twice. "
        "Datagrams that come faster than they are read are lost too."
    ),
    gettext_noop("AIS from a receiver (TCP)"),
    gettext_noop("AIS: receivers connect to Vedette (TCP)"),
    gettext_noop("AIS: receivers send to Vedette (UDP)"),
    gettext_noop("Address"),
    gettext_noop("Answers of"),
    gettext_noop("Ask every ... seconds"),
    gettext_noop("Bearer ..., where the address asks for one."),
    gettext_noop("Begin with"),
    gettext_noop("Brokers"),
    gettext_noop("CSV"),
    gettext_noop("Certificate of the authority (PEM)"),
    gettext_noop("Client id"),
    gettext_noop("Columns of CSV, separated by commas"),
    gettext_noop("Connection to the brokers"),
    gettext_noop(
        "Each change of an answer at least once (quality 1), in the order in which it was stored, even when a process dies. The last message of each "
        "topic is the answer as it is stored; an empty one says that it was withdrawn. Subscribers that were away get what their own "
        "session keeps."
    ),
    gettext_noop(
        "Each change of an answer at least once, in the order in which it was stored, even when a process dies. The last record of each key is the "
        "answer as it is stored; one without a value says that it was withdrawn."
    ),
    gettext_noop("Empty: none. Each message goes to only one of the subscribers that name the same group."),
    gettext_noop("Empty: the first line of each message names them."),
    gettext_noop("Encrypted (TLS)"),
    gettext_noop(
        "Exactly once for records that the address still shows: those of the last answer are recognised. Records that it shows only "
        "between two polls are missing."
    ),
    gettext_noop("Exactly once: the offsets of all partitions are stored in one step with the rows, even when a process dies."),
    gettext_noop("GTFS-realtime: vehicle positions of public transport"),
    gettext_noop("Group of a shared subscription"),
    gettext_noop("Header Authorization"),
    gettext_noop("Host"),
    gettext_noop("How the user logs in (SASL)"),
    gettext_noop("It begins with https:// or http://."),
    gettext_noop("It begins with wss:// or ws://."),
    gettext_noop("Its name; it has to exist."),
    gettext_noop("JSON"),
    gettext_noop("JSON or GeoJSON from an address, polled"),
    gettext_noop("Kafka"),
    gettext_noop("Kafka: answers to a topic"),
    gettext_noop("MQTT"),
    gettext_noop("MQTT: answers to topics"),
    gettext_noop("Merge duplicates within, in seconds"),
    gettext_noop("Message to begin with"),
    gettext_noop("Messages are"),
    gettext_noop("One per line, such as fleet/{entity}/{event}: levels in braces become columns; + stands for any level, # for all the rest."),
    gettext_noop("Only where the broker's certificate is of an authority of your own: from -----BEGIN CERTIFICATE----- on."),
    gettext_noop("Only where the brokers' certificates are of an authority of your own: from -----BEGIN CERTIFICATE----- on."),
    gettext_noop("PLAIN"),
    gettext_noop("Password"),
    gettext_noop("Port"),
    gettext_noop(
        "QoS 1: each message is stored exactly once as long as the broker keeps the session (MQTT 5: a week). QoS 0: messages that "
        "are sent while the connection or Vedette is down are missing; nothing is stored twice."
    ),
    gettext_noop("Quality of service (QoS)"),
    gettext_noop("Records (JMESPath)"),
    gettext_noop("SCRAM-SHA-256"),
    gettext_noop("SCRAM-SHA-512"),
    gettext_noop("Tag reports of RFID readers"),
    gettext_noop("The broker keeps the last message of each answer"),
    gettext_noop(
        "The protocol cannot repeat anything: messages that are sent while the connection or Vedette is down are missing. Nothing is stored twice."
    ),
    gettext_noop("The same message from several receivers. 0: none."),
    gettext_noop("Topic"),
    gettext_noop("Topics"),
    gettext_noop("User"),
    gettext_noop("Usually 1883, with TLS 8883."),
    gettext_noop("Version of MQTT"),
    gettext_noop("WebSocket"),
    gettext_noop("If the server needs a message first, to subscribe for instance."),
    gettext_noop("If the broker knows its clients by their ids. Empty: an id that stays the same."),
    gettext_noop("Later subscribers get them."),
    gettext_noop("all answers that are stored"),
    gettext_noop("all that the topic keeps"),
    gettext_noop("data.vehicles[?active]; empty: the list in the answer."),
    gettext_noop("encrypted (TLS), with user and password"),
    gettext_noop("encrypted (TLS), without log-in"),
    gettext_noop("host:9092, separated by commas."),
    gettext_noop("not encrypted, with user and password"),
    gettext_noop("not encrypted, without log-in"),
    gettext_noop("vedette/yard: each answer is a message of vedette/yard/ID. An empty message withdraws it."),
    gettext_noop("what changes from now on"),
    gettext_noop("what comes from now on"),
)
"""For translators: every text of the protocols that come with Vedette."""


def protocol_text(text: str) -> str:
    """A text of a protocol; those of third-party packages may stay English."""
    return gettext(text) if text else ""
