"""Permissions of the database roles: the application cannot change the schema or rewrite the audit
log, the reader sees no secrets."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError, ProgrammingError, connection, transaction

from webapp.config.database_roles import APPENDED, READ_ONLY, READABLE

pytestmark = [pytest.mark.services, pytest.mark.django_db]
ALL = {"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"}


@pytest.fixture(autouse=True)
def several_roles() -> None:
    if not settings.DATABASE_OWNER:
        pytest.skip("one role owns and uses the given database: DATABASE_OWNER_URL is not set")


def rows(text: str, *values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return list(cursor.fetchall())


def rights(role: str) -> dict[str, set[str]]:
    """Each table, and what the role may do with it."""
    found = rows(
        "SELECT c.relname, r.name FROM pg_class c, unnest(%s::text[]) AS r(name) WHERE c.relnamespace = 'public'::regnamespace"
        " AND c.relkind IN ('r', 'p') AND has_table_privilege(%s, c.oid, r.name)",
        sorted(ALL),
        role,
    )
    names = {name: set() for (name,) in rows("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')")}
    for name, right in found:
        names[name].add(right)
    return names


def test_tests_connect_with_the_role_of_the_application() -> None:
    assert rows("SELECT current_user, rolsuper FROM pg_roles WHERE rolname = current_user") == [(settings.DATABASE_APPLICATION_ROLE, False)]
    assert settings.DATABASE_OWNER["USER"] != settings.DATABASE_APPLICATION_ROLE


def test_the_application_may_only_append_to_the_audit_log() -> None:
    found = rights(settings.DATABASE_APPLICATION_ROLE)
    assert len(found) > 30
    for name, what in found.items():
        wanted = {"SELECT"} if name in READ_ONLY else {"SELECT", "INSERT"} if name in APPENDED else {"SELECT", "INSERT", "UPDATE", "DELETE"}
        assert what == wanted or name.startswith(("detections_p", "detections_n")), name


@pytest.mark.parametrize("text", ["UPDATE audit_entry SET actor_name = 'me'", "DELETE FROM audit_entry", "TRUNCATE audit_entry"])
def test_the_audit_log_is_only_appended_to(text: str) -> None:
    from webapp.audit.services import record

    record("test.try")
    with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
        rows(text)
    assert rows("SELECT count(*) FROM audit_entry WHERE action = 'test.try'") == [(1,)]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE mine (n int)",
        "ALTER TABLE feeds_feed ADD COLUMN mine int",
        "DROP TABLE detections_outbox",
        "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE ROLE mine SUPERUSER",
        "COPY (SELECT 1) TO PROGRAM 'cat'",
        "SELECT pg_read_file('/etc/passwd')",
        "INSERT INTO django_migrations (app, name, applied) VALUES ('audit', '0002', now())",
    ],
)
def test_the_application_changes_neither_schema_nor_server(text: str) -> None:
    with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"), transaction.atomic():
        rows(text)


def test_the_reader_role_sees_results_but_no_user_data() -> None:
    found = rights(settings.DATABASE_READER_ROLE)
    read = {name for name, what in found.items() if what}
    assert all(what <= {"SELECT"} for what in found.values())
    assert read >= {"feeds_feed", "queries_query", "detections_detection", "alerts_alert", "jobs_feedhead"}
    assert all(name.startswith(READABLE) for name in read)
    for name in ("accounts_user", "accounts_apitoken", "django_session", "alerts_channel", "alerts_delivery", "audit_entry"):
        assert found[name] == set(), name


def test_functions_of_the_owner_have_a_fixed_search_path() -> None:
    definers = rows("SELECT proname, proconfig FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace")
    assert {name for name, _ in definers} >= {"detections_partition_ensure", "detections_partition_drop"}
    assert all(config == ["search_path=pg_catalog, pg_temp"] for _, config in definers)


@pytest.mark.parametrize("span", [-1102, 7802, 2**31 - 1])
def test_an_invalid_partition_is_refused(span: int) -> None:
    for name in ("detections_partition_ensure", "detections_partition_drop"):
        with pytest.raises(Exception, match="no partition has the number"), transaction.atomic():
            rows(f"SELECT {name}(%s)", span)


def test_rows_land_in_the_partitions_that_the_program_computes() -> None:
    from webapp.detections.partitions import FIRST, LAST, SPAN, partitions_ensure, span_of

    wanted = {FIRST - 1: ("MINVALUE", FIRST * SPAN), -1: (-SPAN, 0), 3: (3 * SPAN, 4 * SPAN), LAST + 1: ((LAST + 1) * SPAN, "MAXVALUE")}
    partitions_ensure(wanted)
    found = dict(
        rows("SELECT relname, pg_get_expr(relpartbound, oid) FROM pg_class WHERE relispartition AND relname LIKE 'detections_%%' AND relkind = 'r'")
    )
    for span, bounds in wanted.items():
        name = f"detections_{'n' if span < 0 else 'p'}{abs(span):05d}"
        low, high = (bound if isinstance(bound, str) else f"'{bound}'" for bound in bounds)
        assert found[name] == f"FOR VALUES FROM ({low}) TO ({high})"
    assert span_of(3 * SPAN) == span_of(4 * SPAN - 1) == 3


def test_sessions_have_time_limits_for_locks_and_idle_transactions() -> None:
    assert [rows(f"SHOW {name}")[0][0] for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")] == [
        "30s",
        "10s",
        "1min",
    ]


def test_a_statement_that_takes_too_long_is_ended() -> None:
    rows("SELECT set_config('statement_timeout', '100ms', true)")
    began = time.monotonic()
    with pytest.raises(OperationalError, match="statement timeout"), transaction.atomic():
        rows("SELECT pg_sleep(5)")
    assert time.monotonic() - began < 3


def test_a_missing_owner_is_reported(tmp_path: Any) -> None:
    from django.core.management import CommandError, call_command
    from django.test import override_settings

    with override_settings(DATABASE_OWNER={}), pytest.raises(CommandError, match="DATABASE_OWNER_URL"), transaction.atomic():
        call_command("migrate", "detections", "zero", verbosity=0)
