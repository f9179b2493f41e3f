"""Writes facts from streams into the registry: only when they change, and
never over what users wrote."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from webapp.config.room import hold
from webapp.entities.models import Record
from webapp.entities.registry_files import RECORDS, checked
from webapp.feeds.models import Feed

log = logging.getLogger(__name__)

TOGETHER = 1_000
NAME = "name"

Facts = Mapping[str, Mapping[str, str]]


def learn(*, feed: Feed, facts: Facts, **_: Any) -> None:
    """Receives the signal `entities_described`."""
    items = list(facts.items())
    for at in range(0, len(items), TOGETHER):
        registry_learn(feed=feed, facts=dict(items[at : at + TOGETHER]))


@transaction.atomic
def registry_learn(*, feed: Feed, facts: Facts) -> int:
    """Adds facts to the records of their entities; returns how many records changed.

    A fact replaces the stream's earlier value. Values that users changed or removed stay as they
    are. A feed's registry grows to at most RECORDS entities in this way: names can be forged.
    """
    facts = {entity: one for entity, one in facts.items() if _is_possible(entity, one)}
    there = set(Record.objects.filter(feed=feed, entity__in=facts).values_list("entity", flat=True))
    if new := [entity for entity in facts if entity not in there]:
        hold(feed, "pk")
        room = max(0, RECORDS - Record.objects.filter(feed=feed).count())
        # Another process may write the same entity's record now.
        Record.objects.bulk_create([Record(feed=feed, entity=entity) for entity in new[:room]], ignore_conflicts=True)
    changed = []
    for record in Record.objects.select_for_update().filter(feed=feed, entity__in=facts).order_by("entity"):
        if not facts[record.entity].items() <= record.learned.items():
            _take_up(record, facts[record.entity])
            changed.append(record)
    Record.objects.bulk_update(changed, ["name", "attributes", "learned"])
    return len(changed)


def _take_up(record: Record, facts: Mapping[str, str]) -> None:
    for key, value in facts.items():
        before = record.learned.get(key, "")
        if key == NAME and record.name == before:
            record.name = value
        elif key != NAME and record.attributes.get(key, "") == before:
            record.attributes = {**record.attributes, key: value}
    record.learned = {**record.learned, **facts}


def _is_possible(entity: str, facts: Mapping[str, str]) -> bool:
    """Whether the registry accepts it. A third-party source may send anything."""
    try:
        checked(entity, facts.get(NAME, ""), {key: value for key, value in facts.items() if key != NAME})
    except ValueError as error:
        log.warning("what a stream says of %.100r is not taken up: %s", entity, error)
        return False
    return True
