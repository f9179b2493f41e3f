"""Everything on this machine with one command:
`python -m webapp.platform.demo [--no-feeds] [--restore FILE]` (`make demo`, `make up`).

Starts PostgreSQL and Redis (unless DATABASE_URL and REDIS_URL name others), migrates, seeds, then
runs the web server, the worker, the publisher, the ingest, the connectors and, with feeds, the
players. Spark jobs are started by the worker's reconciler, not from here.
"""

import argparse
import fcntl
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from webapp.platform.folders import ROOT, kept_secret, next_free_port, var_folder
from webapp.platform.health import healthy
from webapp.platform.java import JavaError, spark_environment
from webapp.platform.postgres import READER, EmbeddedPostgres, PostgresError
from webapp.platform.processes import Process, ProcessManager, StartError
from webapp.platform.redis import EmbeddedRedis, RedisError
from webapp.platform.web_server import web_command

LOGIN = "analyst"
PLAYERS = ("city", "strait", "plaza", "ocean", "warehouse")
AS_ROOT = (
    "Warning: this runs as root, and so does everything but PostgreSQL: an attacker in one process owns the machine. "
    "For anything but a trial, run it as a separate user that owns the project's folder."
)
NO_KEY = (
    "Warning: a backup has no keys, and there is no {var}/secrets-key: stored secrets of channels and connectors cannot be read, and have to be "
    "entered again. If you have the file secrets-key of the old folder, stop this, remove {var}, put the file there, and start again."
)
HEALTH_SECONDS = 300.0
"""The first request imports all pages: seconds, but minutes on a busy machine. A server that ends
is noticed at once."""
RESTORE_SECONDS = 6 * 3600.0
WARNING = re.compile(r"\(vedette\.W\d+\) (.*)")
"""Of `manage.py check`, which `migrate` runs: about the settings; the demo starts nevertheless."""
DELIVERIES = ("--queues=deliveries", "--pool=threads", "--concurrency=8", "--hostname=deliveries@%h", "--without-gossip", "--without-mingle")
"""Sending mostly waits for others: threads of one process are enough, and the other
worker's tasks are not delayed."""


SETTINGS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "EMAIL_URL", "NUMBA_CACHE_DIR", "SECRET_KEY_FALLBACKS")
"""Settings whose names do not begin with VEDETTE_."""
NOT_FOR_COMMANDS = ("VEDETTE_TOKEN", "VEDETTE_DEMO_PASSWORD", "VEDETTE_DEMO_ADMIN_PASSWORD")


def manage(*arguments: str) -> tuple[str, ...]:
    """The command that runs `manage.py` with this interpreter."""
    return (sys.executable, str(ROOT / "manage.py"), *arguments)


def environment(var: Path, *, port: int, database_url: str, redis_url: str) -> dict[str, str]:
    """The variables that every process of one machine gets. Variables of the caller's environment
    take precedence. Raises JavaError."""
    chosen = {
        "DJANGO_SETTINGS_MODULE": "webapp.config.settings",
        "VEDETTE_VAR": str(var),
        "VEDETTE_PORT": str(port),
        "SECRET_KEY": kept_secret(var / "secret", 48),
        "VEDETTE_SECRETS_KEYS": kept_secret(var / "secrets-key"),
        # 32 random bytes are a private key of P-256, except for one in four billion.
        "VEDETTE_PUSH_KEY": kept_secret(var / "push-key"),
        "ALLOWED_HOSTS": "localhost,127.0.0.1",
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "PYTHONUNBUFFERED": "1",
        # Many processes share few cores: more threads only compete with each other.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        # Otherwise the C library would give each thread of the JVM and of a Python process
        # its own heap, and keep it.
        "MALLOC_ARENA_MAX": "2",
        # The checks load every page into the workers; `migrate` has run them.
        "CELERY_SKIP_CHECKS": "1",
        "VEDETTE_SPARK_MEMORY": "512m",
        **spark_environment(var / "java"),
    }
    # A JAVA_HOME that Spark cannot use was replaced on purpose; the port is the one that was free.
    forced = ("JAVA_HOME", "VEDETTE_PORT")
    return given_settings() | {name: value if name in forced else os.environ.get(name) or value for name, value in chosen.items()}


def given_settings() -> dict[str, str]:
    """The settings of the caller's environment. Commands in another terminal need them too: a
    backup without VEDETTE_LOG_STORE would contain no rows."""
    names = {name: name.removesuffix("_FILE") for name in os.environ}
    return {
        name: os.environ[name]
        for name, setting in names.items()
        if (setting.startswith("VEDETTE_") or setting in SETTINGS) and setting not in NOT_FOR_COMMANDS
    }


def owner_environment(postgres: EmbeddedPostgres | None) -> dict[str, str]:
    """The extra variables of a process that changes the schema: the owner's address and the
    reader's role. External servers have their own."""
    if postgres is None:
        # Removed from the environment, because all other processes inherit it.
        stored = {name: os.environ.pop(name, "") for name in ("DATABASE_OWNER_URL", "DATABASE_READER_ROLE")}
        return {name: value for name, value in stored.items() if value}
    return {"DATABASE_OWNER_URL": postgres.owner_url, "DATABASE_READER_ROLE": READER}


def keep_environment(path: Path, variables: Mapping[str, str]) -> None:
    """Writes `variables` so that `. PATH` in a shell sets them: `manage.py` in another terminal
    then uses this system.

    Only its owner may read it.
    """
    path.unlink(missing_ok=True)
    path.touch(mode=0o600, exist_ok=False)
    path.write_text("".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()))


def keep_environments(var: Path, variables: Mapping[str, str], owner: Mapping[str, str]) -> None:
    """Writes what other shells need for `manage.py`, and what they need in addition for commands of
    the database's owner, such as a backup."""
    keep_environment(var / "environment", variables)
    keep_environment(var / "environment-owner", owner)


def processes(var: Path, port: int, *, feeds: bool) -> Iterator[Process]:
    """The processes that need PostgreSQL and Redis, in the order of their start; they are stopped
    in the reverse one."""
    celery = (sys.executable, "-m", "celery", "-A", "webapp.config")
    yield Process("publisher", manage("publish"))
    yield Process("worker", (*celery, "worker", "--loglevel=INFO", "--concurrency=2"), ends_orphans=True, stop_seconds=15.0)
    yield Process("deliveries", (*celery, "worker", "--loglevel=INFO", *DELIVERIES))
    yield Process("beat", (*celery, "beat", "--loglevel=INFO", f"--schedule={var / 'beat-schedule'}", "--pidfile="))
    yield Process("ingest", manage("ingest"))
    yield Process("connectors", manage("connect"))
    yield web("web", port)
    if feeds:
        yield Process("players", manage("simulate", *PLAYERS), restart="on-failure")


def web(name: str, port: int) -> Process:
    return Process(name, web_command(port))


@contextmanager
def only_one(var: Path) -> Iterator[None]:
    """Holds the lock of this `var` folder; ends the program when another process holds it."""
    with (var / "demo.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"Vedette runs already on {var}. Stop it first, or set VEDETTE_VAR to another folder.")
        yield


def say(text: str) -> None:
    """Prints it for the user at the terminal."""
    print(text, flush=True)


def restore(manager: ProcessManager, *, owner: Mapping[str, str], backup: Path) -> None:
    """Puts the backup into the new, empty database and the folder `var`. Its users and
    their passwords come with it."""
    say(f"Restoring {backup} ...")
    with also(manager.environment, owner):
        say(manager.run("restore", manage("restore", str(backup)), timeout=RESTORE_SECONDS).strip())


def prepare(manager: ProcessManager, *, owner: Mapping[str, str], passwords: Mapping[str, str], feeds: bool) -> None:
    """Migrates and seeds the database. `owner` is used only for the migration,
    the passwords for the seed."""
    say("Preparing the database ...")
    with also(manager.environment, owner):
        for warning in WARNING.findall(manager.run("migrate", manage("migrate", "--noinput"))):
            say(f"Warning: {warning}")
    with also(manager.environment, passwords):
        manager.run("seed", manage("demo_seed", *([] if feeds else ["--no-feeds"])))


@contextmanager
def also(environment: dict[str, str], variables: Mapping[str, str]) -> Iterator[None]:
    """The variables are in the environment of processes started inside, and of no others."""
    environment.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del environment[name]


def run(*, feeds: bool, verbose: bool, backup: Path | None = None) -> None:
    """Starts everything, with `backup` if any, prints the address, and stops everything at Ctrl-C.
    Raises StartError and the parts' own errors."""
    started = time.monotonic()
    if os.geteuid() == 0:
        say(AS_ROOT)
    var = var_folder()
    if backup is not None and not (var / "secrets-key").exists() and "VEDETTE_SECRETS_KEYS" not in os.environ:
        say(NO_KEY.format(var=var))
    reservation = next_free_port(int(os.environ.get("VEDETTE_PORT") or 8000))
    postgres = None if os.environ.get("DATABASE_URL") else EmbeddedPostgres(var / "postgres")
    redis = None if os.environ.get("REDIS_URL") else EmbeddedRedis(var / "redis")
    variables = environment(
        var,
        port=reservation.port,
        database_url=postgres.url if postgres else os.environ["DATABASE_URL"],
        redis_url=redis.url if redis else os.environ["REDIS_URL"],
    )
    owner = owner_environment(postgres)
    keep_environments(var, variables, owner)
    password = kept_secret(var / "analyst-password", 12)
    passwords = {"VEDETTE_DEMO_PASSWORD": password, "VEDETTE_DEMO_ADMIN_PASSWORD": kept_secret(var / "admin-password", 12)}
    with ProcessManager(var / "log", environment=variables, echo=verbose) as manager:
        try:
            for service in (postgres, redis):
                if service is not None:
                    process = service.process()
                    manager.start(process)
                    manager.wait_ready(process.name, service.ready, timeout=60.0)
            if backup is not None:
                restore(manager, owner=owner, backup=backup)
            prepare(manager, owner=owner, passwords=passwords, feeds=feeds)
            say("Starting ...")
            reservation.release()
            for process in processes(var, reservation.port, feeds=feeds):
                manager.start(process)
            manager.wait_ready("web", lambda: healthy(reservation.port), timeout=HEALTH_SECONDS)
        except StartError:
            # Ctrl-C before everything has started is not a failure.
            if not manager.interrupted:
                raise
        else:
            say(f"\n  Vedette is ready after {time.monotonic() - started:.0f} s:  http://127.0.0.1:{reservation.port}/")
            if backup is None:
                say(f"  Log in as {LOGIN} with {password}  (until you change it)")
                say(f"  The administrator is admin; the password is in {var / 'admin-password'}")
            else:
                say("  Log in with a user and a password of the backup.")
            say(f"\n  Logs: {var / 'log'}    Stop: Ctrl-C\n")
        manager.serve()
        say("Stopping ...")


def main(arguments: Sequence[str] | None = None) -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m webapp.platform.demo", description="Runs all of Vedette on this machine.")
    parser.add_argument("--no-feeds", action="store_true", help="without the demo's feeds and players")
    parser.add_argument("--restore", metavar="FILE", type=Path, help="first put this backup of `manage.py backup` into a new var folder")
    parser.add_argument("--verbose", action="store_true", help="also show what the processes print")
    options = parser.parse_args(arguments)
    with only_one(var_folder()):
        try:
            run(feeds=not options.no_feeds, verbose=options.verbose, backup=options.restore and options.restore.absolute())
        except (StartError, PostgresError, RedisError, JavaError) as error:
            sys.exit(f"\n{error}\n")


if __name__ == "__main__":
    main()
