"""Mutes: which alerts send no notifications, from when until when, by whom and why. Muted alerts
are stored and shown as muted.

A mute has a window. The window of a snooze begins now; that of maintenance repeats by an iCalendar
rule (RFC 5545). The row holds the present or next window in absolute time, so whether an alert is
muted is a comparison, and the tick moves windows on. When a window ends, alerts that were open
before it, and those opened in it that still hold, come back to the desk and to the channels; the
rest stay muted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dateutil.rrule import rrulestr
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from engine.model.faults import refuse
from engine.model.messages import Message
from webapp.accounts.models import User
from webapp.accounts.permissions import AnyUser
from webapp.alerts.models import Alert, AlertState, Mute
from webapp.alerts.services import alerts_publish, head_lock
from webapp.audit.services import record
from webapp.config.room import room_check
from webapp.feeds.models import Feed
from webapp.queries.models import Query

MUTES = 1_000
"""Of one owner, that have not ended."""
LONGEST_WINDOW = timedelta(days=7)
LONGEST_AGO = timedelta(days=366)
"""The earliest beginning of a rule: its windows are computed from its beginning."""
CLOCK_CHANGE = timedelta(hours=3)
"""More than any change of daylight saving time."""
NOT_BY_DAYS = {"BYMONTHDAY", "BYSETPOS"}
"""Not with DAILY or WEEKLY: for a 31st of February each day or week until the
year 9999 would be searched."""
RULE_PARTS = {"FREQ", "INTERVAL", "BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS", "WKST", "UNTIL", "COUNT"}
FREQUENCIES = {"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}
"""Days are the finest frequency: the hour is that of the first window. A rule by seconds
would take forever to expand."""
RULE = re.compile(r"(RRULE:)?[A-Z]+=[A-Z0-9,+-]+(;[A-Z]+=[A-Z0-9,+-]+)*", re.ASCII)


def mute_list(*, user: AnyUser) -> QuerySet[Mute]:
    """The mutes that `user` may see: present and future ones first, then past ones."""
    mutes = Mute.objects.visible_to(user).with_editable(user).select_related("owner", "team", "feed", "query", "region")
    return mutes.order_by(F("ended_at").desc(nulls_first=True), "-id")


def mute_create(
    *,
    owner: User,
    feed: Feed,
    reason: str,
    query: Query | None = None,
    region: int | None = None,
    entities: Sequence[str] = (),
    starts_at: datetime | None = None,
    until: datetime | None = None,
    rule: str = "",
    zone: str = "UTC",
    team: int | None = None,
    public: bool = False,
) -> Mute:
    """Mutes the alerts of a query, of the queries that name a region, of an entity or
    of a pair. Raises Refused.

    `until` None: for good. With `rule` the span from `starts_at` to `until` comes again, at the
    same hour of the time zone.
    """
    now = timezone.now()
    first = starts_at or now
    if [query is not None, region is not None, bool(entities)].count(True) != 1:
        raise refuse("", Message("Name one of: query, region, entities."))
    if until is not None and until <= max(first, now) and not rule:
        raise refuse("/until", Message("It is in the past, or before the beginning."))
    mute = Mute(owner=owner, feed=feed, query=query, region_id=region, entities=list(entities), reason=reason, team_id=team, public=public)
    mute.rule, mute.zone, mute.window_from, mute.window_until = rule, zone, first, until
    if rule:
        _check_rule(mute)
        mute.first_from, mute.length = first, _by_the_clock(first, until or first, ZoneInfo(zone))
        following = window_after(mute, now)
        if following is None:
            raise refuse("/rule", Message("It never comes again."))
        mute.window_from, mute.window_until = following
    with transaction.atomic():
        full = Message("You have {most:,} mutes that have not ended, the maximum for one user: lift some first.", most=MUTES)
        room_check(Mute.objects.filter(owner=owner, ended_at=None), MUTES, of=owner, full=full)
        # Serialised with batches: alerts that a batch opens are muted by the batch or found here.
        head_lock(feed.pk)
        mute.save()
        record("mute.create", mute, feed=feed.name, reason=reason, until=None if until is None else until.isoformat())
        if mute.window_from <= now:
            _begin(mute)
    return mute


def mute_lift(*, mute: Mute) -> None:
    """Ends a mute now: its alerts become visible again."""
    with transaction.atomic():
        head_lock(mute.feed_id)
        record("mute.lift", mute)
        _end(mute)
        Mute.objects.filter(pk=mute.pk).update(ended_at=timezone.now())


def mutes_turn(now: datetime | None = None) -> int:
    """Starts windows that have begun, ends those that are over, and advances repeating ones;
    returns how many started and ended."""
    moment = now or timezone.now()
    present = Mute.objects.filter(ended_at=None)
    due = present.filter(Q(window_until__lte=moment) | Q(window_from__lte=moment, begun=False)).values_list("pk", "feed_id")
    for pk, feed_id in list(due):
        with transaction.atomic():
            head_lock(feed_id)
            mute = Mute.objects.filter(pk=pk, ended_at=None).first()
            if mute is not None:
                _turn(mute, moment)
    return len(due)


def _turn(mute: Mute, now: datetime) -> None:
    if mute.window_until is None or mute.window_until > now:
        _begin(mute)
        return
    following = window_after(mute, now) if mute.rule else None
    if following is not None and following[0] <= mute.window_until:
        # It follows without a pause: both are one window, so no alert is unmuted in between.
        mute.window_until = following[1]
        mute.save()
        _begin(mute)
        return
    _end(mute)
    if following is None:
        mute.ended_at = now
    else:
        mute.window_from, mute.window_until = following
    mute.begun = False
    mute.save()


def _begin(mute: Mute) -> None:
    """Open alerts that match are muted from now on."""
    open_ones = _matching(mute).filter(~Q(state=AlertState.RESOLVED), mute=None)
    _change(mute.feed_id, open_ones, mute=mute)
    Mute.objects.filter(pk=mute.pk).update(begun=True)


def _end(mute: Mute) -> None:
    """Alerts opened before the window, and those still open, are unmuted, and sent to the
    channels if they never were."""
    back = Alert.objects.filter(~Q(state=AlertState.RESOLVED), mute=mute).filter(Q(opened_at__lt=mute.window_from) | Q(end=None, over_at=None))
    _change(mute.feed_id, back, mute=None, planned_at=None)


def _change(feed_id: int, alerts: QuerySet[Alert], **fields: Any) -> None:
    ids = list(alerts.values_list("pk", flat=True))
    Alert.objects.filter(pk__in=ids).update(**fields)
    alerts_publish(feed_id, ids)


def _matching(mute: Mute) -> QuerySet[Alert]:
    """The alerts that the mute covers: only those of queries that its owner may change."""
    alerts = Alert.objects.filter(feed=mute.feed_id, query__in=Query.objects.editable_by(mute.owner).values("pk"))
    if mute.query_id is not None:
        return alerts.filter(query=mute.query_id)
    if mute.region_id is not None:
        return alerts.filter(query__regions=mute.region_id)
    return alerts.filter(entities__contains=mute.entities)


def window_after(mute: Mute, now: datetime) -> tuple[datetime, datetime] | None:
    """The first window of a repeating mute that ends after `now`; null if there are no more. It
    begins and ends at the hours of the first, also across changes of daylight saving time."""
    zone = ZoneInfo(mute.zone)
    first = (mute.first_from or mute.window_from).astimezone(zone).replace(tzinfo=None)
    length = mute.length or _by_the_clock(mute.window_from, mute.window_until or mute.window_from, zone)
    rule = rrulestr(mute.rule, dtstart=first)
    occurrence = rule.after(now.astimezone(zone).replace(tzinfo=None) - length - CLOCK_CHANGE)
    while occurrence is not None:
        begin, end = (_on_the_clock(occurrence + since, zone).astimezone(now.tzinfo) for since in (timedelta(), length))
        if end > max(begin, now):
            return begin, end
        occurrence = rule.after(occurrence)
    return None


def _on_the_clock(shown: datetime, zone: ZoneInfo) -> datetime:
    """The instant of this local time; of the change of the clock, if the change skips this time."""
    before, after = (shown.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if before <= after:
        return before
    # Skipped: by the time before the change `before` is behind it, by that after it `after` is not.
    while after < before and after.astimezone(zone).utcoffset() != before.astimezone(zone).utcoffset():
        after += timedelta(minutes=1)
    return after


def _by_the_clock(begin: datetime, end: datetime, zone: ZoneInfo) -> timedelta:
    """Its length in local time; the clock may be put back in between."""
    shown = [moment.astimezone(zone).replace(tzinfo=None) for moment in (begin, end)]
    return shown[1] - shown[0] if shown[1] > shown[0] else end - begin


def _check_rule(mute: Mute) -> None:
    try:
        ZoneInfo(mute.zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise refuse("/zone", Message("A time zone of the IANA list, such as Europe/Athens.")) from error
    if mute.window_until is None or not timedelta() < mute.window_until - mute.window_from <= LONGEST_WINDOW:
        raise refuse("/until", Message("A window that repeats ends after its beginning and lasts at most 7 days."))
    if mute.window_from < timezone.now() - LONGEST_AGO:
        raise refuse("/starts_at", Message("A repeating mute must begin within the last {days} days.", days=LONGEST_AGO.days))
    text = mute.rule.removeprefix("RRULE:")
    parts = dict(part.split("=", 1) for part in text.split(";")) if RULE.fullmatch(mute.rule) else {}
    if parts.get("FREQ") not in FREQUENCIES or not parts.keys() <= RULE_PARTS:
        raise refuse(
            "/rule", Message("As FREQ=WEEKLY;BYDAY=SU: DAILY, WEEKLY, MONTHLY or YEARLY, with INTERVAL, BYDAY, BYMONTHDAY, BYMONTH, COUNT or UNTIL.")
        )
    if parts["FREQ"] in {"DAILY", "WEEKLY"} and parts.keys() & NOT_BY_DAYS:
        raise refuse("/rule", Message("Days of a month need FREQ=MONTHLY, as in FREQ=MONTHLY;BYMONTHDAY=1."))
    try:
        rrulestr(mute.rule, dtstart=datetime(2026, 1, 1))  # noqa: DTZ001  rules are read in local time
    except (ValueError, TypeError) as error:
        raise refuse(
            "/rule", Message("Not an iCalendar rule: {error}. UNTIL is written without Z, in the time zone of the window.", error=error)
        ) from error
