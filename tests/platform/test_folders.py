"""Secrets, ports and folders."""

import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from webapp.platform.folders import PortReservation, kept_port, kept_secret, next_free_port, package_folder


@pytest.fixture
def listener() -> Iterator[int]:
    """A loopback port that a server listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_secret_is_made_once_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "secret"
    assert kept_secret(path) == kept_secret(path)
    assert len(kept_secret(path)) >= 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert kept_secret(tmp_path / "other") != kept_secret(path)


def test_a_reserved_port_cannot_be_taken_until_it_is_released() -> None:
    reservation = PortReservation()
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("127.0.0.1", reservation.port))
    reservation.release()
    reservation.release()
    socket.create_server(("127.0.0.1", reservation.port)).close()


def test_the_next_free_port_is_used_if_the_first_is_taken(listener: int) -> None:
    reservation = next_free_port(listener)
    assert listener < reservation.port < listener + 50
    reservation.release()


def test_a_kept_port_is_reused_and_replaced_if_another_process_has_it(tmp_path: Path, listener: int) -> None:
    first = kept_port(tmp_path / "port")
    first.release()
    again = kept_port(tmp_path / "port")
    assert again.port == first.port
    again.release()
    (tmp_path / "port").write_text(f"{listener}\n")
    assert kept_port(tmp_path / "port").port != listener
    (tmp_path / "port").write_text("broken\n")
    assert kept_port(tmp_path / "port").port > 0


def test_a_missing_package_has_no_folder() -> None:
    assert package_folder("no_such_package_anywhere") is None
    found = package_folder("psycopg2")
    assert found is not None
    assert (found / "__init__.py").exists()
