"""Sends one message through Apprise, in a process that can reach only permitted addresses, and
nothing on this machine.

`python -m webapp.alerts.apprise_child` reads one JSON object from standard input,
`{"url", "title", "body", "networks", "public"}`, and writes one, `{"sent", "problem"}`.
Users enter Apprise's addresses: an audit hook refuses connections to addresses that this
installation does not permit, other kinds of sockets, new processes, and all files but those of
Python and of certificates.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import os
import resource
import socket
import sys
from collections.abc import Sequence
from typing import Any

from engine.model.messages import Message
from webapp.config.outside import RefusedAddress, is_among

MEMORY_BYTES = 400_000_000
"""The limit of virtual memory; it uses 70 MB when it begins."""
CPU_SECONDS = 15
INPUT_BYTES = 1_000_000
READABLE = (sys.prefix, sys.base_prefix, "/etc/ssl", "/usr/lib/ssl", "/usr/share/zoneinfo", "/usr/share/ca-certificates")
ROOTS = tuple({os.path.realpath(path) for path in READABLE})
FORBIDDEN = (
    "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "os.remove", "socket.bind", "socket.sendto", "ctypes.dlopen",
)  # fmt: skip


def main() -> None:
    """One message."""
    message = json.loads(sys.stdin.buffer.read(INPUT_BYTES))
    import apprise

    messages = _captured()
    asset = apprise.AppriseAsset(app_id="Vedette", app_desc="Vedette", app_url="", secure_logging=True)
    sender = apprise.Apprise(asset=asset)
    is_known = sender.add(message["url"])
    # From here on the work depends on the address: it is limited.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    sys.addaudithook(_Guard(message["networks"], public=message["public"]))
    sent = bool(is_known) and bool(sender.notify(title=message["title"], body=message["body"], body_format=apprise.NotifyFormat.TEXT))
    problem = "" if sent else " ".join(messages[-1:]) or Message("The service did not take the message.")
    sys.stdout.write(json.dumps({"sent": sent, "problem": problem[:300]}))


def _captured() -> list[str]:
    """Apprise's log messages about failures, collected."""
    messages: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger = logging.getLogger("apprise")
    logger.addHandler(Keeper(level=logging.WARNING))
    logger.propagate = False
    return messages


class _Guard:
    def __init__(self, networks: Sequence[str], *, public: bool) -> None:
        self.networks = [ipaddress.ip_network(network) for network in networks]
        self.public = public

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect":
            self._check_connection(*arguments)
        elif event == "open":
            _check_file(*arguments)
        elif event.startswith(FORBIDDEN):
            raise PermissionError(f"A message needs no {event}.")

    def _check_connection(self, connection: socket.socket, address: Any) -> None:
        if connection.family not in (socket.AF_INET, socket.AF_INET6) or not connection.type & socket.SOCK_STREAM:
            raise PermissionError("Messages may leave only over TCP.")
        try:
            is_among(str(address[0]), self.networks, public=self.public)
        except RefusedAddress as error:
            # Nothing has been sent yet. As an OSError, because libraries report that as
            # a failure of the network.
            raise OSError(str(error)) from error


def _check_file(path: Any, mode: Any, _flags: Any) -> None:
    if isinstance(path, int):
        return
    where = os.path.realpath(os.fsdecode(path))
    if (isinstance(mode, str) and set(mode) & set("wax+")) or not where.startswith(ROOTS):
        raise PermissionError("A message needs no file.")


if __name__ == "__main__":
    main()
