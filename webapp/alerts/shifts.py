"""Shifts: who is on call when. A rule that names a shift sends to what those keep for themselves who are on call at that moment."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Prefetch, Q, QuerySet
from django.utils import timezone

from engine.model.faults import refuse
from webapp.accounts.models import Membership, Team, User
from webapp.accounts.permissions import AnyUser
from webapp.alerts.models import Shift, Turn
from webapp.alerts.shift_calendars import AHEAD, FILE_BYTES
from webapp.cage.spares import PARSERS, TookTooLong, Work

SECONDS = 4.0
MEMORY_BYTES = 1 << 30
NAMED_AS_UNKNOWN = 10
MOST_OF_A_PERSON = 50


def shift_list(*, user: AnyUser, now: datetime | None = None) -> QuerySet[Shift]:
    """The shifts that `user` may see, each with `present`: the turns of this moment."""
    moment = now or timezone.now()
    present = Turn.objects.filter(begins_at__lte=moment, ends_at__gt=moment).select_related("person").order_by("person__username")
    found = Shift.objects.visible_to(user).with_editable(user).select_related("owner", "team")
    return found.prefetch_related(Prefetch("turns", present, to_attr="present")).order_by("name", "id")


@transaction.atomic
def shift_save(*, user: User, shift: Shift | None = None, calendar: str | None = None, **fields: Any) -> Shift:
    """A new shift of `user`'s, or `shift` with what is given changed; a calendar takes the place of the one before.

    Raises Refused for a calendar that cannot be read, or that names nobody of `user`'s teams.
    """
    if shift is None and Shift.objects.filter(owner=user).count() >= MOST_OF_A_PERSON:
        raise refuse("", f"You have {MOST_OF_A_PERSON} shifts already, as many as one person may.")
    saved = Shift(owner=user) if shift is None else Shift.objects.get(pk=shift.pk)
    for name, value in fields.items():
        setattr(saved, name, value)
    if calendar is None:
        saved.save()
        return saved
    now = timezone.now()
    turns, unknown = _people_of(_read(calendar, saved.zone, now), user)
    if not turns:
        raise refuse("/calendar", f"No event names a member of your teams by user name or e-mail address; named are: {', '.join(unknown) or 'none'}.")
    saved.unknown, saved.known_until = unknown, now + AHEAD
    saved.save()
    saved.turns.all().delete()
    Turn.objects.bulk_create((Turn(shift=saved, person=person, begins_at=begin, ends_at=end) for begin, end, person in turns), batch_size=1000)
    return saved


def _read(calendar: str, zone: str, now: datetime) -> list[tuple[datetime, datetime, list[str]]]:
    data = calendar.encode()
    if len(data) > FILE_BYTES:
        raise refuse("/calendar", f"The calendar has more than {FILE_BYTES // 1_000_000} MB.")
    request = {"zone": zone, "now": now.isoformat()}
    try:
        status, written = PARSERS.ask(Work("webapp.alerts.shift_calendars", request, SECONDS, MEMORY_BYTES, data, again=True))
    except TookTooLong as error:
        raise refuse("/calendar", f"Reading the calendar took more than {SECONDS:g} seconds: leave out what is past.") from error
    if status != 0 or not written.endswith(b"\n"):
        raise refuse("/calendar", "Reading the calendar broke off: it is damaged, or too large.")
    answer = json.loads(written)
    if "faults" in answer:
        raise refuse("/calendar", answer["faults"][0])
    return [(datetime.fromisoformat(begin), datetime.fromisoformat(end), names) for begin, end, names in answer["turns"]]


def _people_of(turns: Iterable[tuple[datetime, datetime, list[str]]], user: User) -> tuple[list[tuple[datetime, datetime, User]], list[str]]:
    """The turns with their people, and the names that are nobody's of `user`'s teams."""
    mine = Team.objects.all() if user.is_superuser else Team.objects.filter(pk__in=Membership.objects.filter(user=user).values("team"))
    mates = list(User.objects.filter(is_active=True).filter(Q(teams__in=mine.values("pk")) | Q(pk=user.pk)).distinct())
    known = {name.lower(): mate for mate in mates for name in (mate.username, mate.email) if name}
    found, unknown = list[tuple[datetime, datetime, User]](), dict[str, None]()
    for begin, end, names in turns:
        people = {mate.pk: mate for name in names if (mate := known.get(name.lower())) is not None}
        found += [(begin, end, person) for person in people.values() if end > begin]
        if not people:
            unknown |= dict.fromkeys(names)
    return found, list(unknown)[:NAMED_AS_UNKNOWN]


class Roster:
    """Who is on call in some shifts, looked up once for a span of time."""

    def __init__(self, shifts: Iterable[int], since: datetime, until: datetime) -> None:
        wanted = set(shifts)
        found = Turn.objects.filter(shift__in=wanted, begins_at__lte=until, ends_at__gt=since) if wanted else Turn.objects.none()
        self.turns: dict[tuple[int, int], list[tuple[datetime, datetime]]] = {}
        for shift, person, begin, end in found.values_list("shift", "person", "begins_at", "ends_at"):
            self.turns.setdefault((shift, person), []).append((begin, end))

    def is_on_call(self, person: int, shifts: Iterable[int], moment: datetime) -> bool:
        """Whether the person has a turn in one of the shifts at `moment`."""
        return any(begin <= moment < end for shift in shifts for begin, end in self.turns.get((shift, person), ()))
