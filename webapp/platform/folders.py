"""The project's folder and the folder of its changing files."""

import importlib.util
import os
import secrets
import socket
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def var_folder() -> Path:
    """The folder for all data of a running installation: VEDETTE_VAR, else `var/` in the
    project. Created when missing."""
    folder = Path(os.environ.get("VEDETTE_VAR") or ROOT / "var").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def package_folder(name: str) -> Path | None:
    """The folder of the installed package `name`, None if it is not
    installed. It is not imported."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def kept_secret(path: Path, length: int = 32) -> str:
    """The random URL-safe text kept in `path` (mode 0600), made from `length`
    random bytes at the first call."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(length) + "\n")
    return path.read_text().strip()


class PortReservation:
    """A loopback port that is reserved until `release`, so that an address can be given out
    before its server starts."""

    def __init__(self, preferred: int = 0) -> None:
        """Takes `preferred` if it is free, else any free port."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if preferred:
            # As servers do: the closing connections of a killed server do not
            # make its port a taken one.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", preferred))
        except OSError:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
            self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    def release(self) -> None:
        """Frees the port for its server; may be called twice."""
        self._socket.close()


def next_free_port(first: int, tries: int = 50) -> PortReservation:
    """The first free loopback port among `first`, `first` + 1, ..., else any free one."""
    for number in range(first, first + tries):
        reservation = PortReservation(number)
        if reservation.port == number:
            return reservation
        reservation.release()
    return PortReservation()


def kept_port(path: Path) -> PortReservation:
    """The port of an earlier run kept in `path` if it is still free, else a
    new one, then kept there.

    A Spark job that outlived a crash of its manager finds the database at
    the address that it knows.
    """
    try:
        preferred = int(path.read_text())
    except (OSError, ValueError):
        preferred = 0
    reservation = PortReservation(preferred)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{reservation.port}\n")
    return reservation
