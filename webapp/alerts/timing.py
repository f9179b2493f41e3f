"""When messages may be sent: quiet hours, digests, and one message for grouped alerts.

All of it is decided once, when an alert is planned, only from times: the alert's and those of
earlier notifications. A waiting notification is a row with its time, so neither a restart nor a
second planner changes the grouping. Only a change of the timing itself does (`waiting`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from engine.model.messages import Message
from webapp.queries.models import Severity

HOUR = timedelta(hours=1)
LONGEST_GROUP_MINUTES = 24 * 60


class Digest(models.TextChoices):
    HOURLY = "hourly", "Every hour"
    DAILY = "daily", "Every day"
    WEEKLY = "weekly", "Every Monday"


class Grouping(models.TextChoices):
    QUERY = "query", "By query"
    ENTITY = "entity", "By entity"
    REGION = "region", "By region"


@dataclass(frozen=True)
class Timing:
    """When the messages of a rule or a channel may be sent; times of day are in `zone`."""

    zone: str = "UTC"
    quiet_from: time | None = None
    quiet_until: time | None = None
    digest: str = ""
    digest_at: time = time(8)
    critical_passes: bool = True
    group_by: str = ""
    group_minutes: int = 30

    def release(self, moment: datetime, severity: str) -> datetime:
        """When an alert of `moment` may be sent: not before the next
        digest, and not in quiet hours."""
        if severity == Severity.CRITICAL and self.critical_passes:
            return moment
        return self._after_quiet(self._next_digest(moment))

    def _next_digest(self, moment: datetime) -> datetime:
        local = moment.astimezone(ZoneInfo(self.zone))
        if self.digest == Digest.HOURLY:
            begun = moment - timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
            return moment if begun == moment else begun + HOUR
        if self.digest in (Digest.DAILY, Digest.WEEKLY):
            return self._next(self.digest_at, local, is_monday=self.digest == Digest.WEEKLY)
        return moment

    def _after_quiet(self, moment: datetime) -> datetime:
        local = moment.astimezone(ZoneInfo(self.zone))
        begin, end = self.quiet_from, self.quiet_until
        if begin is None or end is None or not lies_within(local.time(), begin, end):
            return moment
        return self._next(end, local)

    def _next(self, at: time, local: datetime, *, is_monday: bool = False) -> datetime:
        """The next instant at which the local time is `at`, on any day or a Monday."""
        day = local.date() + timedelta(days=local.time() > at)
        if is_monday:
            day += timedelta(days=-day.weekday() % 7)
        return datetime.combine(day, at, ZoneInfo(self.zone)).astimezone(UTC)


AT_ONCE = Timing()


def lies_within(at: time, begin: time, end: time) -> bool:
    """Whether `at` is in the span [begin, end) of a day; one whose end is not after its
    beginning spans midnight.

    >>> lies_within(time(23), time(22), time(6)), lies_within(time(6), time(22), time(6))
    (True, False)
    >>> lies_within(time(7), time(6), time(8))
    True
    """
    return begin <= at < end if begin < end else at >= begin or at < end


@dataclass(frozen=True)
class Limit:
    """At most `most` messages within `window` with the same `key`; alerts beyond that
    wait and are sent together."""

    key: str
    most: int
    window: timedelta

    def next_due(self, moment: datetime, written: Sequence[datetime]) -> datetime:
        """When an alert of `moment` is sent, after messages at the times `written`: at once, with a
        waiting one, or when one more is permitted."""
        times = sorted(set(written))
        if times and times[-1] > moment:
            return times[-1]
        if len(times) < self.most or times[-self.most] + self.window <= moment:
            return moment
        return times[-self.most] + self.window


class Timed(models.Model):
    """A model whose messages have a timing: a routing rule or a channel."""

    zone = models.CharField(max_length=60, default="UTC")
    quiet_from = models.TimeField(null=True, blank=True)
    quiet_until = models.TimeField(null=True, blank=True)
    digest = models.CharField(max_length=10, choices=Digest.choices, blank=True, default="")
    digest_at = models.TimeField(default=time(8), help_text="Of a daily or weekly digest.")
    critical_passes = models.BooleanField(default=True, help_text="Critical alerts wait for neither the end of quiet hours nor a digest.")
    group_by = models.CharField(max_length=10, choices=Grouping.choices, blank=True, default="")
    group_minutes = models.PositiveIntegerField(default=30, validators=[MinValueValidator(1), MaxValueValidator(LONGEST_GROUP_MINUTES)])

    TIMING = ("zone", "quiet_from", "quiet_until", "digest", "digest_at", "critical_passes", "group_by", "group_minutes")

    class Meta:
        abstract = True

    @property
    def timing(self) -> Timing:
        return Timing(**{name: getattr(self, name) for name in self.TIMING})


def timing_of(fields: dict[str, Any]) -> Timing:
    """Removes the timing from the fields of a rule that is not stored, and returns it."""
    return Timing(**{name: fields.pop(name) for name in Timed.TIMING if name in fields})


def timing_faults(fields: Mapping[str, Any]) -> dict[str, Message]:
    """The faults of the timing in these fields, by field."""
    faults = {}
    try:
        ZoneInfo(fields.get("zone", "UTC"))
    except (ZoneInfoNotFoundError, ValueError):
        faults["zone"] = Message("A time zone of the IANA list, such as Europe/Athens.")
    begin, end = fields.get("quiet_from"), fields.get("quiet_until")
    if (begin is None) != (end is None) or (begin is not None and begin == end):
        faults["quiet_until"] = Message("Quiet hours have a beginning and another time as their end; leave both empty for none.")
    return faults
