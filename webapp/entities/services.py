"""Writes of the registry, of notes and of watches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from django.core.exceptions import PermissionDenied
from django.db import transaction

from engine.model.faults import refuse
from engine.model.messages import Message
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import check_may_make
from webapp.audit.services import record
from webapp.config.room import hold, room_check
from webapp.entities.models import Note, Record, Watch
from webapp.entities.registry_files import RECORDS, FileEntity, checked
from webapp.feeds.models import Feed
from webapp.feeds.recent import accepted, log_of

WATCHES = 50
"""The limit per person."""
NOTES = 10_000
"""Of one author."""
MOST_RECORDS = 2 * RECORDS
"""Of one feed: twice of what streams may fill, so that there is room for people's."""


def record_put(*, feed: Feed, entity: str, name: str, attributes: Mapping[str, str]) -> Record | None:
    """Writes an entity's record; an empty one is removed. Raises Refused."""
    try:
        entry = checked(entity, name, attributes)
    except ValueError as error:
        raise refuse("", Message("{error}.", error=error)) from error
    with transaction.atomic():
        record("entity.change", feed, entity=entity)
        if not entry.name and not entry.attributes:
            Record.objects.filter(feed=feed, entity=entity).delete()
            return None
        if not Record.objects.filter(feed=feed, entity=entity).exists():
            room_check(Record.objects.filter(feed=feed), MOST_RECORDS, of=feed, full=_registry_full())
        return Record.objects.update_or_create(feed=feed, entity=entity, defaults={"name": entry.name, "attributes": entry.attributes})[0]


def registry_import(*, feed: Feed, entries: Sequence[FileEntity]) -> int:
    """Stores the entities of a file; their existing records are replaced,
    those of other entities stay. Raises Refused."""
    records = [Record(feed=feed, entity=one.entity, name=one.name, attributes=one.attributes) for one in entries]
    with transaction.atomic():
        hold(feed, "pk")
        theirs = Record.objects.filter(feed=feed)
        # In the order of `registry_learn`, so that neither waits for the other.
        known = theirs.select_for_update(no_key=True).filter(entity__in=[one.entity for one in entries]).order_by("entity").values_list("pk")
        if new := len(records) - len(known):
            room_check(theirs, MOST_RECORDS, of=feed, full=_registry_full(), pointer="/file", more=new)
        Record.objects.bulk_create(
            records, update_conflicts=True, unique_fields=["feed", "entity"], update_fields=["name", "attributes"], batch_size=1_000
        )
        record("entity.import", feed, count=len(records))
    return len(records)


def _registry_full() -> Message:
    return Message("The registry of a feed has at most {most:,} entities: remove some first.", most=MOST_RECORDS)


def note_add(*, feed: Feed, entity: str, author: User, text: str) -> Note:
    """Adds a note. Raises PermissionDenied for viewers, Refused."""
    check_may_make(author, Role.ANALYST)
    with transaction.atomic():
        full = Message("You have written {most:,} notes, the maximum for one user: remove some first.", most=NOTES)
        room_check(Note.objects.filter(author=author), NOTES, of=author, full=full)
        note = Note.objects.create(feed=feed, entity=entity, author=author, text=text)
        record("entity.note", feed, entity=entity)
    return note


def note_remove(*, note: Note, user: User) -> None:
    """Removes the user's own note; an administrator can remove any."""
    if note.author_id != user.pk and not user.is_superuser:
        raise PermissionDenied(Message("Only its author removes a note."))
    with transaction.atomic():
        record("entity.note-remove", note.feed, entity=note.entity)
        note.delete()


@transaction.atomic
def watch_begin(*, user: User, feed: Feed, entity: str) -> Watch:
    """Watches for the entity's next report from now on; a watch that has ended is renewed."""
    others = Watch.objects.filter(user=user).exclude(feed=feed, entity=entity)
    full = Message("You watch {most} entities, the maximum for one user: end a watch first.", most=WATCHES)
    room_check(others, WATCHES, of=user, full=full)
    return Watch.objects.update_or_create(user=user, feed=feed, entity=entity, defaults={"position": log_of(feed).end[0], "reported_t": None})[0]


def watch_end(*, user: User, feed: Feed, entity: str) -> None:
    """Removes the watch."""
    Watch.objects.filter(user=user, feed=feed, entity=entity).delete()


def watches_look() -> None:
    """Looks for reports of all watched entities: in each feed's log, the rows that
    came since the last look."""
    waiting = Watch.objects.filter(reported_t=None)
    for feed in Feed.objects.filter(pk__in=waiting.values("feed")):
        _look(feed, list(waiting.filter(feed=feed)))


def _look(feed: Feed, watches: list[Watch]) -> None:
    log = log_of(feed)
    next_seq, _ = log.end
    first = max(min(watch.position for watch in watches), log.start)
    reported: dict[str, list[tuple[int, int]]] = {watch.entity: [] for watch in watches}
    for table in log.read(first, next_seq, columns=["event", "entity", "t", "clock", "seq"]):
        rows = accepted(feed, table)
        rows = rows.filter(pc.is_in(rows.column("entity"), value_set=pa.array(list(reported), pa.string())))
        for entity, seq, t in zip(*(rows.column(name).to_pylist() for name in ("entity", "seq", "t")), strict=True):
            reported[entity].append((seq, t))
    for watch in watches:
        watch.reported_t = next((t for seq, t in reported[watch.entity] if seq >= watch.position), None)
        # If it was renewed meanwhile, it is another watch.
        Watch.objects.filter(pk=watch.pk, position=watch.position).update(position=next_seq, reported_t=watch.reported_t)
