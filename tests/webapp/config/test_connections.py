"""Which threads keep their database connection, and which return it."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest
from channels.db import database_sync_to_async
from channels.testing import HttpCommunicator
from django.db import close_old_connections, connection, connections, transaction

from tests.webapp.entry import server_entry
from webapp.config.connections import give_back
from webapp.config.postgresql.base import IDLE_CONNECTIONS, IDLE_S, IdleConnections

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    """A long-lived thread, like those of jobs, publisher and ingest."""
    with ThreadPoolExecutor(1) as pool:
        yield pool
        pool.submit(connections.close_all).result()


T = TypeVar("T")


def backend() -> int:
    """The server process of this thread's connection, as new work finds it."""
    close_old_connections()
    return backend_now()


def backend_now() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    return int(pid)


def ended(pid: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def sessions() -> set[int]:
    """All connections to this database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'")
        return {pid for (pid,) in cursor.fetchall()}


def comes_down_to(allowed: set[int]) -> bool:
    """Whether soon no other connection is left: server processes end a
    moment after their clients."""
    give_up = time.monotonic() + 10
    while not sessions() <= allowed:
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
    return True


def test_a_connection_notices_within_seconds_that_the_network_is_gone() -> None:
    """Asks the kernel, which alone knows what was acknowledged."""
    connection.ensure_connection()
    with socket.socket(fileno=os.dup(connection.connection.fileno())) as raw:
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20_000
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) + 3 * raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 25


def test_a_long_lived_thread_keeps_its_connection(thread: ThreadPoolExecutor) -> None:
    assert thread.submit(backend).result() == thread.submit(backend).result()


def test_a_connection_that_broke_is_replaced(thread: ThreadPoolExecutor) -> None:
    broken = thread.submit(backend).result()
    ended(broken)
    assert thread.submit(backend).result() != broken


def test_a_connection_is_returned_only_outside_transactions(thread: ThreadPoolExecutor) -> None:
    def kept_inside() -> bool:
        with transaction.atomic():
            before = backend_now()
            give_back()
            return backend_now() == before

    assert thread.submit(kept_inside).result()
    before = sessions() | {backend_now()}
    held = thread.submit(backend_now).result()
    assert held in sessions()
    thread.submit(give_back).result()
    assert comes_down_to(before - {held})


@pytest.fixture
def application() -> Any:
    """The server's application, loaded before there is an event loop."""
    return server_entry()


@pytest.fixture
def idle_connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[IdleConnections]:
    """As in a web server: one connection is kept."""
    # This thread has another one.
    backend_now()
    monkeypatch.setattr(IDLE_CONNECTIONS, "limit", 1)
    yield IDLE_CONNECTIONS
    IDLE_CONNECTIONS.close()


def in_a_thread(act: Callable[[], T]) -> T:
    """Like a request: it runs in its own thread, and returns its connection."""

    def request() -> T:
        try:
            return act()
        finally:
            give_back()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(request).result()


def test_the_next_request_reuses_the_connection(idle_connections: IdleConnections) -> None:
    assert in_a_thread(backend_now) == in_a_thread(backend_now)


def test_no_more_connections_are_kept_than_allowed(idle_connections: IdleConnections) -> None:
    before = sessions() | {backend_now()}
    both = in_a_thread(lambda: (backend_now(), in_a_thread(backend_now)))
    assert comes_down_to(before | {both[1]})


def test_a_pooled_connection_that_was_closed_is_not_used(idle_connections: IdleConnections) -> None:
    kept = in_a_thread(backend_now)
    ended(kept)
    assert comes_down_to(sessions() - {kept})
    assert in_a_thread(backend_now) != kept


def test_a_connection_inside_a_transaction_is_not_pooled(idle_connections: IdleConnections) -> None:
    def left_open() -> int:
        connection.set_autocommit(False)
        return backend_now()

    assert in_a_thread(left_open) != in_a_thread(backend_now)


def test_connections_with_different_limits_are_not_shared(idle_connections: IdleConnections) -> None:
    def limit() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            return str(cursor.fetchone()[0])

    def limited() -> str:
        connection.settings_dict["OPTIONS"] = {"options": "-c statement_timeout=7s"}
        return limit()

    assert in_a_thread(limit) == "30s"
    assert in_a_thread(limited) == "7s"


def test_unused_connections_are_closed(idle_connections: IdleConnections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IDLE_CONNECTIONS, "limit", 2)
    before = sessions() | {backend_now()}
    old, kept = in_a_thread(lambda: (in_a_thread(backend_now), backend_now()))
    for idle in idle_connections._kept:
        idle.since -= IDLE_S if idle.raw.info.backend_pid == old else 0
    assert in_a_thread(backend_now) == kept
    assert comes_down_to(before | {kept})


async def test_requests_under_asgi_leave_no_connection_behind(application: Any) -> None:
    before = await database_sync_to_async(sessions)()
    for _ in range(5):
        page = HttpCommunicator(application, "GET", "/healthz", headers=[(b"host", b"localhost")])
        assert (await page.get_response(timeout=30))["status"] == 200
        await page.wait(timeout=30)
    try:
        assert await database_sync_to_async(comes_down_to)(before)
    finally:
        await database_sync_to_async(connections.close_all)()
