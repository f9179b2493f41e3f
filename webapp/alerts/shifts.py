"""Shifts: who is on call when. A rule with a shift sends to the personal channels of those who
are on call at that moment."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Exists, F, Min, OuterRef, Prefetch, Q, QuerySet, Subquery, Window
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.formats import date_format
from django.utils.translation import gettext

from engine.model.faults import refuse
from engine.model.messages import Message, listed, message_from_json
from webapp.accounts.language import language_of
from webapp.accounts.models import Membership, Team, User
from webapp.accounts.permissions import AnyUser
from webapp.alerts.models import Shift, Turn
from webapp.alerts.selectors import channels_working
from webapp.alerts.shift_calendars import AHEAD, FILE_BYTES, TURNS
from webapp.cage.warm_pool import PARSERS, CageRequest, TookTooLong
from webapp.config.room import hold, room_check

logger = logging.getLogger(__name__)
SECONDS = 4.0
MEMORY_BYTES = 1 << 30
NAMED_AS_UNKNOWN = 10
MOST_OF_A_PERSON = 50
SOON = timedelta(days=30)
"""A calendar that ends earlier needs to be imported again."""
GAP = timedelta(days=3)
"""Longer than a weekend: a gap this long is not intended. Turns entered by hand that end earlier
need to be continued."""
BEING_MADE = timedelta(days=1)
"""No mail is sent about a shift while its turns are being entered."""
LONGEST_TURN = timedelta(days=100)
"""A longer one is a mistyped year."""


def shift_list(*, user: AnyUser, now: datetime | None = None) -> QuerySet[Shift]:
    """The shifts that `user` may see, each with what `shifts_at` finds."""
    return shifts_at(Shift.objects.visible_to(user).with_editable(user), now or timezone.now()).select_related("owner", "team").order_by("name", "id")


def shifts_at(shifts: QuerySet[Shift], moment: datetime) -> QuerySet[Shift]:
    """The shifts, each with `present`: the current turns, `following`: when the next one begins,
    `upcoming`: the turns that begin then, `last_end` and `last_by_hand`: when the last one of the
    calendar ends, and the last one that was entered by hand. Of present and upcoming turns
    `is_reachable`: whether the person has a channel that works."""
    channels = channels_working().filter(team=None, owner=OuterRef("person"))
    turns = Turn.objects.select_related("person").annotate(is_reachable=Exists(channels)).order_by("person__username")
    present = turns.filter(begins_at__lte=moment, ends_at__gt=moment)
    next_of_it = Window(Min("begins_at"), partition_by="shift")
    upcoming = turns.filter(begins_at__gt=moment).annotate(next=next_of_it).filter(begins_at=F("next"))
    of_it = Turn.objects.filter(shift=OuterRef("pk"))
    following = of_it.filter(begins_at__gt=moment).order_by("begins_at").values("begins_at")[:1]
    last = of_it.order_by("-ends_at").values("ends_at")
    ends = {"last_end": Subquery(last.filter(by_hand=False)[:1]), "last_by_hand": Subquery(last.filter(by_hand=True)[:1])}
    of_each = [Prefetch("turns", present, to_attr="present"), Prefetch("turns", upcoming, to_attr="upcoming")]
    return shifts.annotate(following=Subquery(following), **ends).prefetch_related(*of_each)


def on_duty(shift: Any) -> list[Any]:
    """The current turns, else the next ones. `shift`: as `shifts_at` gives it."""
    return list(shift.present or shift.upcoming)


class ShiftWarning(NamedTuple):
    """A problem of a shift: an identifier, and the sentence for users; `remedy`: a further
    sentence, if the first does not contain it."""

    kind: str
    text: str
    remedy: str = ""

    @property
    def sentences(self) -> str:
        return f"{self.text} {self.remedy}".strip()


def end_of(shift: Any, now: datetime) -> datetime:
    """When the last turn ends, of the calendar at the latest where recurring ones were expanded
    to. `shift`: as `shifts_at` gives it."""
    return max((end for end in (_end_of_calendar(shift), shift.last_by_hand) if end is not None), default=now)


def _end_of_calendar(shift: Any) -> datetime | None:
    return None if shift.last_end is None else min(shift.known_until, shift.last_end)


def warning_of(shift: Any, now: datetime, *, is_editor: bool = True) -> ShiftWarning | None:
    """Why alerts sent to this shift may soon reach nobody. `shift`: as `shifts_at` gives it.

    `is_editor`: for users who may change the shift; only they see whether other users have
    channels.
    """
    if ended := _ended(shift, now):
        return ended
    if is_editor and _cannot_be_reached(shift.present):
        text = gettext("Reaches nobody now: %(names)s, on call without a channel that works.") % {"names": _names(shift.present)}
        return ShiftWarning("unheard", text, gettext("Ask them to add one under Account, Channels."))
    if ends := _ends(shift, now):
        return ends
    if is_editor and _cannot_be_reached(shift.upcoming):
        text = gettext("Reaches nobody from %(day)s on: %(names)s, next on call, without a channel that works.")
        words = text % {"day": _day(shift.following, shift.zone), "names": _names(shift.upcoming)}
        return ShiftWarning("next", words, gettext("Ask them to add one under Account, Channels."))
    if not shift.present and shift.following is not None and shift.following - now > GAP:
        return ShiftWarning("gap", gettext("Nobody is on call until %(day)s.") % {"day": _day(shift.following, shift.zone)})
    return None


def _ended(shift: Any, now: datetime) -> ShiftWarning | None:
    end, of_calendar = end_of(shift, now), _end_of_calendar(shift)
    if of_calendar is None and shift.last_by_hand is None:
        return ShiftWarning("ended", gettext("Nobody is on call: enter turns, or import a calendar."))
    if end > now:
        return None
    if of_calendar == end:
        return ShiftWarning("ended", gettext("The calendar has ended: nobody is on call. Import it again."))
    return ShiftWarning("ended", gettext("The last turn has ended: nobody is on call. Enter another."))


def _ends(shift: Any, now: datetime) -> ShiftWarning | None:
    """A calendar ends soon, and no turn entered by hand lasts longer than soon; or the last turn
    does, where there is no calendar any more."""
    end, of_calendar = end_of(shift, now), _end_of_calendar(shift)
    if of_calendar is not None and of_calendar > now:
        if end - now >= SOON:
            return None
        return ShiftWarning("ends", gettext("The calendar ends on %(day)s: import it again before.") % {"day": _day(of_calendar, shift.zone)})
    if end - now >= GAP:
        return None
    return ShiftWarning("ends", gettext("The last turn ends on %(day)s: enter another before.") % {"day": _day(end, shift.zone)})


def _cannot_be_reached(turns: Sequence[Any]) -> bool:
    return bool(turns) and not any(turn.is_reachable for turn in turns)


def _names(turns: Sequence[Any]) -> str:
    return ", ".join(turn.person.username for turn in turns)


def _day(moment: datetime, zone: str) -> str:
    local = moment.astimezone(ZoneInfo(zone))
    return date_format(local, gettext("j F Y"), use_l10n=False)


def shifts_warn(now: datetime | None = None) -> int:
    """Mails the problems of shifts to their owners, each problem once; returns how many mails were
    sent. A mail that fails is sent in the next round."""
    moment, sent = now or timezone.now(), 0
    found: Iterable[Any] = shifts_at(Shift.objects.select_related("owner"), moment)
    for shift in found:
        warning = warning_of(shift, moment)
        if shift.last_end is None and moment - shift.created_at < BEING_MADE:
            warning = None
        kind = "" if warning is None else warning.kind
        if kind == shift.warned:
            continue
        if warning is not None:
            if not settings.EMAIL_GIVEN or not shift.owner.email or not shift.owner.is_active:
                continue
            with translation.override(language_of(shift.owner.language_of_messages)):
                # Written again in the reader's language.
                is_mailed = _mailed(shift, warning_of(shift, moment) or warning)
            if not is_mailed:
                continue
            sent += 1
        Shift.objects.filter(pk=shift.pk).update(warned=kind)
    return sent


def _mailed(shift: Shift, warning: ShiftWarning) -> bool:
    link = f"{settings.PUBLIC_URL}{reverse('account')}" if settings.PUBLIC_URL else gettext("Account, Shifts")
    text = gettext("The shift “%(name)s”: %(text)s Rules that send to it reach only people on call.")
    words = text % {"name": shift.name, "text": warning.sentences}
    subject = gettext("The shift %(name)s: %(text)s") % {"name": shift.name, "text": warning.text}
    mail = EmailMessage(" ".join(subject.split())[:200], f"{words}\n\n{link}\n", to=[shift.owner.email])
    try:
        return bool(mail.send())
    except (SMTPException, OSError):
        logger.warning("The mail about the shift %s could not be sent.", shift.pk, exc_info=True)
        return False


@transaction.atomic
def shift_save(*, user: User, shift: Shift | None = None, calendar: str | None = None, **fields: Any) -> Shift:
    """A new shift of `user`'s, or `shift` with the given changes; a calendar
    replaces the previous one, not the turns entered by hand.

    Raises Refused for a calendar that cannot be read, or that names nobody of `user`'s teams.
    """
    now = timezone.now()
    zone = fields.get("zone", Shift().zone if shift is None else shift.zone)
    # Before rows are locked: it may take seconds.
    events = None if calendar is None else _read(calendar, zone, now)
    if shift is None:
        full = Message("You have {most} shifts, the maximum for one user.", most=MOST_OF_A_PERSON)
        room_check(Shift.objects.filter(owner=user), MOST_OF_A_PERSON, of=user, full=full)
    # Of two calendars that come at the same time, the turns of one stay.
    saved = Shift(owner=user) if shift is None else hold(shift)
    for name, value in fields.items():
        setattr(saved, name, value)
    if calendar is not None and saved.zone != zone:
        # Another request has changed the zone meanwhile.
        events = _read(calendar, saved.zone, now)
    if events is None:
        saved.save()
        return saved
    turns, unknown = _people_of(events, user)
    if not turns:
        raise refuse(
            "/calendar",
            Message("No event names a member of your teams by user name or e-mail address; named are: {names}.", names=listed(unknown)),
        )
    saved.unknown, saved.known_until = unknown, now + AHEAD
    saved.save()
    saved.turns.filter(by_hand=False).delete()
    Turn.objects.bulk_create((Turn(shift=saved, person=person, begins_at=begin, ends_at=end) for begin, end, person in turns), batch_size=1000)
    return saved


def _read(calendar: str, zone: str, now: datetime) -> list[tuple[datetime, datetime, list[str]]]:
    data = calendar.encode()
    if len(data) > FILE_BYTES:
        raise refuse("/calendar", Message("The calendar has more than {most} MB.", most=FILE_BYTES // 1_000_000))
    request = {"zone": zone, "now": now.isoformat()}
    try:
        status, written = PARSERS.ask(CageRequest("webapp.alerts.shift_calendars", request, SECONDS, MEMORY_BYTES, data))
    except TookTooLong as error:
        raise refuse(
            "/calendar", Message("Reading the calendar took more than {seconds} seconds: leave out what is past.", seconds=f"{SECONDS:g}")
        ) from error
    if status != 0 or not written.endswith(b"\n"):
        raise refuse("/calendar", Message("Reading the calendar failed: it is damaged, or too large."))
    answer = json.loads(written)
    if "faults" in answer:
        raise refuse("/calendar", message_from_json(answer["faults"][0]))
    return [(datetime.fromisoformat(begin), datetime.fromisoformat(end), names) for begin, end, names in answer["turns"]]


def turn_list(*, shift: Shift, since: datetime) -> QuerySet[Turn]:
    """The turns of a shift that have not ended at `since`, the first one first."""
    return shift.turns.filter(ends_at__gt=since).select_related("person").order_by("begins_at", "id")


@transaction.atomic
def turn_save(*, user: User, shift: Shift, turn: Turn | None = None, **fields: Any) -> Turn:
    """A new turn of `shift` entered by hand, or `turn` with the given changes: `person` (a user
    name), `begins_at`, `ends_at`.

    Raises Refused: the person has to be in a team of `user`'s and on call only once at a time; a
    turn that has ended cannot be changed.
    """
    # Of turns entered at the same time the second one sees the first.
    hold(shift, "pk")
    # Read again: it may have been changed or removed meanwhile.
    saved = Turn(shift=shift, by_hand=True) if turn is None else get_object_or_404(Turn.objects.select_related("person"), pk=turn.pk)
    name = fields.pop("person", None)
    if name is not None and (turn is None or name != saved.person.username):
        person = _teammates(user).filter(username=name).first()
        if person is None:
            raise refuse("/person", Message("No member of your teams has the user name {name}.", name=repr(name)))
        saved.person = person
    for key, value in fields.items():
        setattr(saved, key, value)
    _check_turn(saved)
    saved.save()
    return saved


def _check_turn(turn: Turn) -> None:
    if turn.ends_at <= turn.begins_at:
        raise refuse("/ends_at", Message("It has to end after it begins."))
    if turn.ends_at <= timezone.now():
        raise refuse("/ends_at", Message("This time is past: a turn defines who is on call now or later."))
    if turn.begins_at > timezone.now() + AHEAD:
        raise refuse("/begins_at", Message("A turn may begin within the next {days} days.", days=AHEAD.days))
    if turn.ends_at - turn.begins_at > LONGEST_TURN:
        raise refuse("/ends_at", Message("A turn may last {days} days at most.", days=LONGEST_TURN.days))
    others = turn.shift.turns.exclude(pk=turn.pk)
    if others.filter(person=turn.person, begins_at__lt=turn.ends_at, ends_at__gt=turn.begins_at).exists():
        raise refuse("/person", Message("{name} is on call in this shift at that time already.", name=turn.person.username))
    if others.count() >= TURNS:
        raise refuse("", Message("A shift may have {most:,} turns at most.", most=TURNS))


def _teammates(user: User) -> QuerySet[User]:
    """The users whom `user` may put on call."""
    teams = Team.objects.all() if user.is_superuser else Team.objects.filter(pk__in=Membership.objects.filter(user=user).values("team"))
    return User.objects.filter(is_active=True).filter(Q(teams__in=teams.values("pk")) | Q(pk=user.pk)).distinct()


def _people_of(turns: Iterable[tuple[datetime, datetime, list[str]]], user: User) -> tuple[list[tuple[datetime, datetime, User]], list[str]]:
    """The turns with their users, and the names that match no member of `user`'s teams."""
    known = {name.lower(): teammate for teammate in _teammates(user) for name in (teammate.username, teammate.email) if name}
    on_call, unknown = list[tuple[datetime, datetime, User]](), dict[str, None]()
    for begin, end, names in turns:
        people = {teammate.pk: teammate for name in names if (teammate := known.get(name.lower())) is not None}
        on_call += [(begin, end, person) for person in people.values()]
        if not people:
            unknown |= dict.fromkeys(names)
    return on_call, list(unknown)[:NAMED_AS_UNKNOWN]


class Roster:
    """Who is on call in some shifts, looked up once for a period."""

    def __init__(self, shifts: Iterable[int], since: datetime, until: datetime) -> None:
        distinct = set(shifts)
        turns = Turn.objects.filter(shift__in=distinct, begins_at__lte=until, ends_at__gt=since) if distinct else Turn.objects.none()
        self.turns: dict[tuple[int, int], list[tuple[datetime, datetime]]] = {}
        for shift, person, begin, end in turns.values_list("shift", "person", "begins_at", "ends_at"):
            self.turns.setdefault((shift, person), []).append((begin, end))

    def is_on_call(self, person: int, shifts: Iterable[int], moment: datetime) -> bool:
        """Whether the user has a turn in one of the shifts at `moment`."""
        return any(begin <= moment < end for shift in shifts for begin, end in self.turns.get((shift, person), ()))
