"""PostgreSQL away and back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
from django.db import connection
from psycopg2 import sql

from webapp.platform.postgres import with_database


@contextmanager
def outage() -> Iterator[None]:
    """Nobody can reach the test's database inside; sessions that were open are cut off without a word, as in a crash of the server."""
    name = connection.settings_dict["NAME"]
    connection.close()
    admin = psycopg2.connect(with_database(os.environ["DATABASE_URL"], "postgres"))
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
