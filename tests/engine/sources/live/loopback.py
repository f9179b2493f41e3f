"""A network that permits everything, on this machine only."""

from __future__ import annotations

import socket


class Loopback:
    """Permits everything, on this machine only."""

    port = 0

    def address(self, host: str, port: int) -> str:
        return host

    def connect(self, host: str, port: int) -> socket.socket:
        return socket.create_connection((host, port), 5)

    def listen(self, port: int, *, datagrams: bool = False) -> socket.socket:
        found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if datagrams else socket.SOCK_STREAM)
        found.bind(("127.0.0.1", 0))
        if not datagrams:
            found.listen(8)
        self.port = found.getsockname()[1]
        return found
