"""Who keeps a connection to the database, and who gives it back."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from channels.db import database_sync_to_async
from channels.testing import HttpCommunicator
from django.db import close_old_connections, connection, connections, transaction

from webapp.config.connections import give_back

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    """One that lasts, as those of jobs, publisher and ingest do."""
    with ThreadPoolExecutor(1) as pool:
        yield pool
        pool.submit(connections.close_all).result()


def backend() -> int:
    """The server's process behind this thread's connection, as work that begins finds it."""
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
    """Whether soon no other connection is left: the server's processes end a moment after their clients."""
    give_up = time.monotonic() + 10
    while not sessions() <= allowed:
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
    return True


def test_a_thread_that_lasts_keeps_its_connection(thread: ThreadPoolExecutor) -> None:
    assert thread.submit(backend).result() == thread.submit(backend).result()


def test_a_connection_that_broke_is_replaced(thread: ThreadPoolExecutor) -> None:
    broken = thread.submit(backend).result()
    ended(broken)
    assert thread.submit(backend).result() != broken


def test_a_connection_is_given_back_but_not_from_inside_a_transaction(thread: ThreadPoolExecutor) -> None:
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
    """The server's entry. Loading it asks the database, so it is loaded before there is a loop."""
    from psycopg2 import extensions

    from webapp.config.asgi import application

    # A web server waits for the database in its own way (`webapp.platform.waits`), in which nothing can COPY: later tests do.
    extensions.set_wait_callback(None)
    return application


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
