"""The services that write the audit log."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DatabaseError, models, transaction

from webapp.audit.models import Entry, Outcome
from webapp.audit.origin import count_entry, origin

logger = logging.getLogger(__name__)
lines = logging.getLogger("vedette.audit")


def record(action: str, thing: models.Model | None = None, *, actor: Any = None, outcome: Outcome = Outcome.DONE, **detail: Any) -> None:
    """Records that `action` (kind of object and verb: `query.change`) was done to `thing`. Call it
    in the transaction that does it.

    Who did it and from where comes from the request being answered, else from the command that
    runs. `detail` has further information as JSON; never put a secret there. A request for which
    something was recorded gets no entry from the middleware.
    """
    entry_write(action=action, outcome=outcome, detail=detail, **origin(actor), **described(thing))
    count_entry()


def record_all(action: str, things: Sequence[models.Model]) -> None:
    """The same for many objects of one kind: an entry for each, in one statement."""
    who = origin(None)
    entries = [Entry(**_texts({"action": action, "outcome": Outcome.DONE, "detail": {}, **who, **described(thing)})) for thing in things]
    _write_lines_on_commit(Entry.objects.bulk_create(entries, batch_size=1_000))
    count_entry()


def described(thing: models.Model | None) -> dict[str, Any]:
    """The fields of an entry that describe an object."""
    if thing is None:
        return {}
    name = next((str(getattr(thing, name)) for name in ("name", "username") if getattr(thing, name, None)), "")
    return {
        "object_type": thing._meta.model_name,
        "object_id": str(thing.pk or ""),
        "object_name": name[:200],
        "team": thing.pk if thing._meta.model_name == "team" else getattr(thing, "team_id", None),
    }


def entry_write(**fields: Any) -> None:
    """Adds one entry."""
    _write_lines_on_commit([Entry.objects.create(**_texts(fields))])


def _write_lines_on_commit(entries: Sequence[Entry]) -> None:
    """Writes the entries as lines as well, if configured, after the commit."""
    if settings.AUDIT_FILE:
        transaction.on_commit(partial(_write_lines, entries, datetime.now(UTC).isoformat(timespec="milliseconds")))


def _write_lines(entries: Sequence[Entry], at: str) -> None:
    fields = [field.attname for field in Entry._meta.concrete_fields if field.attname != "at"]
    for entry in entries:
        lines.info(json.dumps({"at": at, **{name: getattr(entry, name) for name in fields}}, default=str))


def _texts(fields: Mapping[str, Any]) -> dict[str, Any]:
    """PostgreSQL's texts contain no NUL, but a requested address may."""
    return {name: value.replace("\0", "\ufffd") if isinstance(value, str) else value for name, value in fields.items()}


def entry_write_or_log(**fields: Any) -> None:
    """Adds one entry for something that has happened already: without the database, it
    goes to the process's log."""
    try:
        entry_write(**fields)
    except DatabaseError as error:
        logger.error("not in the audit log (%s): %s", error, json.dumps(fields, default=str))
