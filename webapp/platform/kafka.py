"""Kafka on loopback for `make cluster` and the tests: one node, broker and controller (KRaft), from
its own jars of Maven Central.

`python -m webapp.platform.kafka FOLDER HOST PORT` becomes the broker for other machines, which
reach it as HOST; with `--fetch` it only fetches the program.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from webapp.platform.embedded import EmbeddedServer, EmbeddedServerError
from webapp.platform.folders import PortReservation, kept_port
from webapp.platform.jars import jars, java_program
from webapp.platform.processes import Process

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""A folder belongs to one cluster; this one has one node, so any id is suitable."""
FORMAT_S = 120
PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://{bind}:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""
"""A killed broker counts as alive, and the next one is refused, until its session ends: by default
9 s."""


class KafkaServerError(EmbeddedServerError):
    """The broker could not be fetched or started."""


def command(properties: Path) -> tuple[str, ...]:
    """The command of the broker. Fetches it the first time. Raises KafkaServerError."""
    return (*_java(), "kafka.Kafka", str(properties))


def prepare(folder: Path, host: str, port: int, controller: int, *, bind: str = "127.0.0.1") -> Path:
    """The properties of a broker that clients reach as `host`, and its folder formatted at the
    first call. Raises KafkaServerError."""
    folder.mkdir(parents=True, exist_ok=True)
    properties = folder / "kafka.properties"
    properties.write_text(PROPERTIES.format(bind=bind, host=host, port=port, controller=controller, folder=folder))
    if not (folder / "data" / "meta.properties").exists():
        tool = [*_java(), "kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", str(properties)]
        done = subprocess.run(tool, capture_output=True, text=True, check=False, timeout=FORMAT_S)
        if done.returncode:
            raise KafkaServerError(f"Kafka's folder {folder} could not be formatted: {done.stderr[-2000:]}")
    return properties


def _java() -> tuple[str, ...]:
    try:
        folder = jars("kafka")
    except OSError as error:
        raise KafkaServerError(f"Kafka could not be fetched from Maven Central: {error}") from error
    return (java_program(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{folder}/*")


class KafkaServer(EmbeddedServer):
    """One broker without log-in, on loopback."""

    title = "Kafka"
    error = KafkaServerError

    def __init__(self, folder: Path, *, reservation: PortReservation | None = None) -> None:
        super().__init__(folder, reservation=reservation)
        self._controller = kept_port(self.folder / "controller-port")

    @property
    def url(self) -> str:
        """For `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    def process(self) -> Process:
        """The broker for a process manager."""
        return Process("kafka", command(self.folder / "kafka.properties"), before_start=self.prepare, stop_seconds=20.0)

    def prepare(self) -> None:
        """Formats the folder once, and frees the ports for the broker."""
        prepare(self.folder, "127.0.0.1", self.port, self._controller.port)
        self._reservation.release()
        self._controller.release()


def main(arguments: list[str]) -> None:
    """The program."""
    if arguments == ["--fetch"]:
        command(Path(tempfile.gettempdir()))
        return
    folder, host, port = arguments
    # Other machines reach it: its network must be closed to all but Vedette's own processes.
    program = command(prepare(Path(folder), host, int(port), int(port) + 1, bind="0.0.0.0"))  # noqa: S104  for other machines, by request
    os.execv(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
