"""Empties the database after a test that committed something.

Django truncates all tables, which takes PostgreSQL a third of a second of processor time and every
table's strongest lock: a server of the test that still reads could become what a deadlock ends.
Here rows are deleted where there are any, by the owner of the tables.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

TRIES, PAUSE_S = 60, 0.1
KEPT = {"django_content_type", "auth_permission"}
"""Made when the database was made, and the same after each test."""
WRITTEN_BY_TRIGGERS = {"detections_count"}


def deletions(tables: Iterable[str]) -> str:
    """Tables that triggers of others write to come last."""
    return ";".join(f'DELETE FROM "{name}"' for name in sorted(set(tables) - KEPT, key=lambda name: (name in WRITTEN_BY_TRIGGERS, name)))


def install() -> None:
    """Replaces Django's `flush`, which pytest-django calls, by this."""
    from django.core.management.commands import flush
    from django.db import IntegrityError, OperationalError
    from django.db.backends.postgresql.operations import DatabaseOperations

    from webapp.config.database_roles import as_owner

    execute = DatabaseOperations.execute_sql_flush

    def as_deletions(self: Any, style: Any, tables: Sequence[str], **_: Any) -> list[str]:
        return [deletions(tables)]

    def execute_as_owner(self: Any, statements: list[str]) -> None:
        with as_owner(self.connection):
            for left in reversed(range(TRIES)):
                try:
                    execute(self, statements)
                except (OperationalError, IntegrityError):
                    # A server that the test has started may still write.
                    if left == 0:
                        raise
                    time.sleep(PAUSE_S)
                else:
                    return

    DatabaseOperations.sql_flush = as_deletions  # type: ignore[method-assign]
    DatabaseOperations.execute_sql_flush = execute_as_owner  # type: ignore[method-assign]
    # What it would make again was kept.
    flush.emit_post_migrate_signal = lambda *_, **__: None  # type: ignore[attr-defined]
