"""Who may do what in the database: the owner changes its schema, the application its rows, a reader
reads streams and answers.

The application must not be the owner, so that a fault in it can neither change the schema nor
rewrite the audit log. With a single role (no DATABASE_OWNER_URL) this module has no effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import transaction
from psycopg2 import sql

READABLE = ("feeds_", "queries_", "detections_", "jobs_", "alerts_alert")
"""Prefixes of the tables that the reader may read: none with secrets, users or their actions."""
READ_ONLY = ("django_migrations",)
"""Tables that the application only reads."""
APPENDED = ("audit_entry",)
"""Tables that the application adds to and reads."""
OWNER_LIMITS = "-c statement_timeout=0 -c lock_timeout=10s"
"""Migrations may take their time, but must not block others while they wait for a lock."""


@contextmanager
def as_owner(connection: Any) -> Iterator[None]:
    """Inside, `connection` is the database owner's. Not to be called within a transaction."""
    owner = settings.DATABASE_OWNER
    if not owner:
        yield
        return
    before = {name: connection.settings_dict.get(name) for name in (*owner, "OPTIONS")}
    connection.close()
    connection.settings_dict.update(owner, OPTIONS={**(before["OPTIONS"] or {}), "options": OWNER_LIMITS})
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(before)


def grant(connection: Any) -> None:
    """Gives the application's and the reader's role what they need in this database, and nothing
    else. Needs the owner's connection."""
    application, reader = settings.DATABASE_APPLICATION_ROLE, settings.DATABASE_READER_ROLE
    if not settings.DATABASE_OWNER or application == settings.DATABASE_OWNER["USER"]:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        _database(cursor, application, reader)
        names = _tables(cursor)
        _application(cursor, application, names)
        if reader:
            _reader(cursor, reader, [name for name in names if name.startswith(READABLE)])


def _run(cursor: Any, text: str, **names: Any) -> None:
    cursor.execute(
        sql.SQL(text).format(**{name: value if isinstance(value, sql.Composable) else sql.Identifier(value) for name, value in names.items()})
    )


def _database(cursor: Any, application: str, reader: str) -> None:
    """Other roles cannot even connect."""
    cursor.execute("SELECT current_database()")
    database = cursor.fetchone()[0]
    _run(cursor, "REVOKE ALL ON DATABASE {database} FROM PUBLIC", database=database)
    _run(cursor, "REVOKE ALL ON SCHEMA public FROM PUBLIC")
    for role, what in ((application, "CONNECT, TEMPORARY"), (reader, "CONNECT")):
        if role:
            _run(cursor, f"GRANT {what} ON DATABASE {{database}} TO {{role}}", database=database, role=role)
            _run(cursor, "GRANT USAGE ON SCHEMA public TO {role}", role=role)
            _run(cursor, "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role}", role=role)


def _tables(cursor: Any) -> list[str]:
    """The tables that programs name: partitions are reached through theirs."""
    cursor.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition ORDER BY 1"
    )
    return [name for (name,) in cursor.fetchall()]


def _application(cursor: Any, role: str, names: list[str]) -> None:
    for what, tables in (
        ("SELECT", names),
        ("INSERT", [name for name in names if name not in READ_ONLY]),
        ("UPDATE, DELETE", [name for name in names if name not in READ_ONLY + APPENDED]),
    ):
        _run(cursor, f"GRANT {what} ON {{tables}} TO {{role}}", tables=_list(tables), role=role)
    _run(cursor, "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}", role=role)
    _run(cursor, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {role}", role=role)


def _reader(cursor: Any, role: str, names: list[str]) -> None:
    _run(cursor, "GRANT SELECT ON {tables} TO {role}", tables=_list(names), role=role)


def _list(names: list[str]) -> sql.Composable:
    return sql.SQL(", ").join(map(sql.Identifier, names))
