"""Real brokers on loopback: Mosquitto if installed (`.ci/run` installs it), and Kafka from
the jars of Maven Central."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from webapp.platform.kafka import command, prepare

START_S = 120.0
MOSQUITTO = """
listener {port} 127.0.0.1
{tls}
user {user}
allow_anonymous true
persistence true
persistence_location {folder}/
max_inflight_messages 2000
max_queued_messages 1000000
"""


class Broker:
    """A broker that can be killed and started again on its port."""

    def __init__(self, folder: Path, *, certificate: Path | None = None) -> None:
        self.folder, self.port = folder, free_port()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        program = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
        if program is None:
            pytest.skip("Mosquitto is not installed here: .ci/run installs it, as root")
        tls = "" if certificate is None else f"certfile {certificate}\nkeyfile {certificate}"
        (folder / "mosquitto.conf").write_text(MOSQUITTO.format(port=self.port, user=getpass.getuser(), folder=folder, tls=tls))
        self._command = [program, "-c", str(folder / "mosquitto.conf")]

    def start(self) -> None:
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=self.folder, stdout=log, stderr=log)
        end = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < end and self._process.poll() is None, (self.folder / "broker.log").read_text()[-2_000:]
                time.sleep(0.05)

    def stop(self, *, kill: bool = False) -> None:
        if self._process is not None:
            self._process.kill() if kill else self._process.terminate()
            self._process.wait(30)
            self._process = None


@contextmanager
def broker(folder: Path, *, certificate: Path | None = None) -> Iterator[Broker]:
    """A running broker."""
    one = Broker(folder, certificate=certificate)
    one.start()
    try:
        yield one
    finally:
        one.stop()


class KafkaBroker(Broker):
    """One node of Kafka, broker and controller (KRaft), from its own jars."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._process = None
        self._command = list(command(prepare(folder, "127.0.0.1", self.port, free_port())))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
