"""Outages of PostgreSQL, and a second server."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import unquote, urlsplit

import psutil
import psycopg2
from django.db import connection
from django.test import override_settings
from psycopg2 import sql

from webapp.platform.postgres import EmbeddedPostgres, with_database


@contextmanager
def pointed_at(url: str, owner_url: str) -> Iterator[None]:
    """This process, and those that it starts, use the database `url` inside;
    `owner_url` is its owner's."""
    parts = urlsplit(url)
    other = {"HOST": parts.hostname, "PORT": parts.port, "NAME": parts.path[1:], "USER": parts.username, "PASSWORD": unquote(parts.password or "")}
    before = {name: connection.settings_dict[name] for name in other}
    owner = urlsplit(owner_url)
    urls = {"DATABASE_URL": url, "DATABASE_OWNER_URL": owner_url}
    before_urls = {name: os.environ.get(name, "") for name in urls}
    connection.close()
    connection.settings_dict.update(other)
    os.environ.update(urls)
    try:
        with override_settings(
            DATABASE_OWNER={"USER": owner.username, "PASSWORD": unquote(owner.password or "")}, DATABASE_APPLICATION_ROLE=parts.username
        ):
            yield
    finally:
        connection.close()
        connection.settings_dict.update(before)
        os.environ.update(before_urls)


def kill(server: EmbeddedPostgres) -> None:
    """Sends KILL to the server and all its children at once, in the middle of their work."""
    assert server.pid is not None
    main = psutil.Process(server.pid)
    for process in [main, *main.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    main.wait(10)
    connection.close()


@contextmanager
def outage() -> Iterator[None]:
    """Inside, no client can connect to the test's database, and open sessions are cut off without a
    message, as in a crash of the server."""
    name = connection.settings_dict["NAME"]
    connection.close()
    admin = psycopg2.connect(with_database(os.environ.get("DATABASE_OWNER_URL") or os.environ["DATABASE_URL"], "postgres"))
    admin.autocommit = True
    allow = sql.SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS {}")
    with admin.cursor() as cursor:
        cursor.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            yield
        finally:
            cursor.execute(allow.format(sql.Identifier(name), sql.SQL("true")))
    admin.close()
