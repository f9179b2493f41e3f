"""The embedded PostgreSQL: starts again after any kind of end, keeps its data,
and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg2
import pytest

from webapp.platform.postgres import APPLICATION, SUPERUSER, EmbeddedPostgres, _servers_of, fresh_database, with_database
from webapp.platform.processes import tied_to_parent

pytestmark = pytest.mark.services


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that any user can enter, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="vedette-postgres-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


def query(url: str, text: str) -> list[tuple[object, ...]]:
    """The rows of one statement, committed."""
    connection = psycopg2.connect(url)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def wait_until(claim: Callable[[], bool], seconds: float = 15.0) -> bool:
    """Whether `claim` came true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if claim():
            return True
        time.sleep(0.05)
    return claim()


def test_committed_rows_survive_kill_9_of_the_server(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    try:
        server.start()
        url = server.owner_url
        query(url, "CREATE TABLE kept AS SELECT 7 AS n")
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        assert wait_until(lambda: server._popen is not None and server._popen.poll() is not None)
        assert (server.data / "postmaster.pid").exists()
        server.start()
        assert server.owner_url == url
        assert query(url, "SELECT n FROM kept") == [(7,)]
    finally:
        server.stop()
    assert _servers_of(server.data) == []


def test_a_pid_file_that_names_another_live_process_does_not_stop_the_start(folder: Path) -> None:
    with EmbeddedPostgres(folder).running():
        lines = (folder / "data" / "postmaster.pid").read_text().splitlines()
    # The process id now belongs to another program of the same user, as after a reboot.
    with subprocess.Popen(tied_to_parent(["sleep", "60"], user=EmbeddedPostgres(folder).user)) as stranger:
        time.sleep(0.2)
        (folder / "data" / "postmaster.pid").write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
        with EmbeddedPostgres(folder).running() as url:
            assert query(url, "SELECT 1") == [(1,)]
        stranger.kill()


def test_a_server_left_running_by_an_earlier_run_is_stopped_and_replaced(folder: Path) -> None:
    first, second = EmbeddedPostgres(folder), EmbeddedPostgres(folder)
    try:
        first.start()
        url = second.start()
        assert first._popen is not None
        assert first._popen.wait(5) == 0
        assert query(url, "SELECT 1") == [(1,)]
    finally:
        second.stop()
        first.stop()


def test_the_server_ends_with_the_process_that_started_it(folder: Path) -> None:
    program = f"""
        import time
        from pathlib import Path
        from webapp.platform.postgres import EmbeddedPostgres
        server = EmbeddedPostgres(Path({str(folder)!r}))
        server.start()
        print(server.pid, flush=True)
        time.sleep(60)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert psutil.pid_exists(pid)
        parent.kill()
    assert wait_until(lambda: _servers_of(folder / "data") == [])


def test_a_folder_that_only_its_owner_may_enter_works_too(folder: Path) -> None:
    folder.chmod(0o700)
    with EmbeddedPostgres(folder / "inside").running() as url:
        assert query(url, "SHOW fsync") == [("on",)]
        assert query(url, "SHOW max_connections") == [("100",)]


def test_the_password_is_required(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    try:
        url = server.start()
        with pytest.raises(psycopg2.OperationalError, match="password"):
            psycopg2.connect(url.replace(server.password_of(APPLICATION), "guess"))
        passwords = sorted(folder.glob("password*"))
        assert len(passwords) == 4 and {path.stat().st_mode & 0o777 for path in passwords} == {0o600}
    finally:
        server.stop()


def test_the_application_is_neither_superuser_nor_owner(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    with server.running() as url:
        rights = "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls FROM pg_roles WHERE rolname = current_user"
        assert query(url, rights) == [(False, False, False, False, False)]
        assert query(server.owner_url, rights) == [(False, False, True, False, False)]
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            query(url, "CREATE TABLE mine AS SELECT 7 AS n")


def test_objects_of_the_former_superuser_go_to_the_owner(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    superuser = server.url_of(SUPERUSER)
    with server.running():
        query(superuser, "ALTER DATABASE vedette OWNER TO vedette")
        query(superuser, "CREATE TABLE kept (id bigint GENERATED ALWAYS AS IDENTITY, at bigint) PARTITION BY RANGE (at)")
        query(superuser, "CREATE TABLE kept_1 PARTITION OF kept FOR VALUES FROM (1) TO (2)")
    with server.running():
        query(server.owner_url, "ALTER TABLE kept ADD COLUMN more text")
        owners = "SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relname LIKE 'kept%'"
        assert query(server.owner_url, owners) == [("vedette_owner",)]
        assert query(superuser, "SELECT datdba::regrole::text FROM pg_database WHERE datname = 'vedette'") == [("vedette_owner",)]


def test_a_fresh_database_is_empty_even_if_the_name_existed(owner_url: str) -> None:
    url = fresh_database(owner_url, 'odd "name"')
    query(url, "CREATE TABLE old (n int)")
    assert fresh_database(owner_url, 'odd "name"') == url
    assert query(url, "SELECT count(*) FROM pg_tables WHERE tablename = 'old'") == [(0,)]


def test_a_database_is_replaced_as_soon_as_a_session_of_the_server_leaves_it(folder: Path) -> None:
    """Such as autovacuum: only a superuser may end it."""
    server = EmbeddedPostgres(folder)
    with server.running():
        url = fresh_database(server.owner_url, "restored")
        query(url, "CREATE TABLE old (n int)")
        session = psycopg2.connect(with_database(server.url_of(SUPERUSER), "restored"))
        leave = threading.Timer(1.0, session.close)
        leave.start()
        assert fresh_database(server.owner_url, "restored") == url
        leave.join()
        assert query(url, "SELECT count(*) FROM pg_tables WHERE tablename = 'old'") == [(0,)]


def test_only_the_database_of_the_url_is_replaced() -> None:
    assert with_database("postgres://u:p%2F@127.0.0.1:1/a?sslmode=disable", "b c") == "postgres://u:p%2F@127.0.0.1:1/b%20c?sslmode=disable"
