"""Connections of connectors: the address that was checked is the one that is connected to."""

from __future__ import annotations

import socket

from django.conf import settings

from engine.model.messages import Message, message_of
from engine.sources.live import SourceUnavailable
from webapp.config.outside import RefusedAddress, is_named

CONNECT_S = 5.0
WAITING = 16
PLACES = ("host", "servers", "url")
"""The settings that say where a connector connects to."""


class GuardedNetwork:
    """Reaches public addresses and the networks that the operator named;
    listens on the operator's ports."""

    def address(self, host: str, port: int) -> str:
        if any(ord(sign) <= 32 or ord(sign) > 126 for sign in host):
            raise SourceUnavailable(Message("The host has characters that are not allowed in a host."), *PLACES)
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        except (socket.gaierror, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise SourceUnavailable(Message("The host {host} is not known: {error}", host=host, error=why), *PLACES) from error
        addresses = [str(sockaddr[0]) for *_, sockaddr in infos]
        try:
            for one in addresses:
                is_named(one)
        except RefusedAddress as error:
            raise SourceUnavailable(message_of(error), *PLACES) from error
        return addresses[0]

    def connect(self, host: str, port: int) -> socket.socket:
        address = self.address(host, port)
        try:
            return socket.create_connection((address, port), CONNECT_S)
        except OSError as error:
            problem = Message("{host}:{port} cannot be reached: {error}", host=host, port=port, error=error.strerror or error)
            raise SourceUnavailable(problem, *PLACES) from error

    def listen(self, port: int, *, datagrams: bool = False) -> socket.socket:
        if (problem := port_problem(port)) is not None:
            raise SourceUnavailable(problem, "port")
        family = socket.AF_INET6 if ":" in settings.CONNECTOR_BIND else socket.AF_INET
        server = socket.socket(family, socket.SOCK_DGRAM if datagrams else socket.SOCK_STREAM)
        try:
            if not datagrams:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((settings.CONNECTOR_BIND, port))
            if not datagrams:
                server.listen(WAITING)
        except OSError as error:
            server.close()
            raise SourceUnavailable(
                Message("Port {port} cannot be listened on: {error}", port=port, error=error.strerror or error), "port"
            ) from error
        return server


def port_problem(port: int) -> Message | None:
    """Why connectors may not listen on the port."""
    if port in listening_ports():
        return None
    if not settings.CONNECTOR_PORTS:
        return Message("Connectors of this installation may not listen. An operator of it can allow ports: VEDETTE_CONNECTOR_PORTS.")
    ports = ", ".join(settings.CONNECTOR_PORTS)
    return Message(
        "Connectors listen only on these ports: {ports}. An operator of this installation can allow others: VEDETTE_CONNECTOR_PORTS.", ports=ports
    )


def listening_ports() -> set[int]:
    """The ports on which connectors may listen."""
    ports: set[int] = set()
    for text in settings.CONNECTOR_PORTS:
        first, _, last = text.partition("-")
        ports.update(range(int(first), int(last or first) + 1))
    return ports
