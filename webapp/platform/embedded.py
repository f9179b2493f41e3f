"""An embedded server on loopback: started by a process manager by `process()`, or as a child of
this process by `start`."""

import os
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from webapp.platform.folders import PortReservation, kept_port, kept_secret
from webapp.platform.processes import Process, tied_to_parent


class EmbeddedServerError(RuntimeError):
    """An embedded server could not be found, prepared or started; the text gives the reason and the
    remedy."""


class EmbeddedServer(ABC):
    """One server with its port, password and log in a folder."""

    title: ClassVar[str]
    error: ClassVar[type[EmbeddedServerError]]

    def __init__(self, folder: Path, *, reservation: PortReservation | None = None, password: str | None = None) -> None:
        """Takes a port and a password (kept in `folder` unless given), starts nothing."""
        self.folder = folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._reservation = reservation or kept_port(self.folder / "port")
        self.port = self._reservation.port
        self.password = password or kept_secret(self.folder / "password")
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """Where clients find the server from the moment it is ready, with the password."""

    @abstractmethod
    def process(self) -> Process:
        """The server for a process manager."""

    @abstractmethod
    def prepare(self) -> None:
        """Preparation before each start; frees the port for the server. Raises `error`."""

    def ready(self) -> bool:
        """Whether the server takes connections."""
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def start(self, *, timeout: float = 60.0) -> str:
        """Starts the server as a child of this process and returns its URL; does nothing
        when it runs. Raises `error`."""
        if self._popen is not None and self._popen.poll() is None:
            return self.url
        self.prepare()
        process = self.process()
        command = tied_to_parent(process.command, signal_number=process.stop_signal, user=process.user, keep_search=process.keep_search)
        with (self.folder / "log").open("ab") as log:
            self._popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + timeout
        while not self.ready():
            if self._popen.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise self.error(f"{self.title} did not start:\n" + (self.folder / "log").read_text(errors="replace")[-2000:])
            time.sleep(0.05)
        return self.url

    def stop(self) -> None:
        """Stops the server that `start` started, by KILL when it takes too
        long; may be called twice."""
        if self._popen is None:
            return
        if self._popen.poll() is None:
            process = self.process()
            self._popen.send_signal(process.stop_signal)
            try:
                self._popen.wait(process.stop_seconds)
            except subprocess.TimeoutExpired:
                os.killpg(self._popen.pid, signal.SIGKILL)
                self._popen.wait()
        self._popen = None

    @contextmanager
    def running(self) -> Iterator[str]:
        """The server's URL while it runs; stops it on exit. Raises `error`."""
        try:
            yield self.start()
        finally:
            self.stop()

    @property
    def pid(self) -> int | None:
        """The process id of the server that `start` started."""
        return self._popen.pid if self._popen is not None else None
