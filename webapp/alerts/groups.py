"""Shows floods of alerts as a few rows: matching alerts grouped by query, entity or region, each
group with its count and a strip of opening times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

from django.db.models import Count, F, FloatField, Func, IntegerField, Max, Min, Q, QuerySet, TextField, Value
from django.db.models.functions import Extract

from webapp.alerts.models import UNATTENDED_STATES, Alert
from webapp.config.moments import iso
from webapp.config.openapi import Moment
from webapp.queries.models import Severity

BARS = 24
MOST_GROUPS = 200
NAMES = {"query": "query__name", "region": "query__regions__name"}
BY = ["query", "entity", "region"]


class AlertGroup(TypedDict):
    """The alerts of one query, entity or region; `strip`: how many were opened in
    each of BARS equal spans."""

    key: str
    name: str
    count: int
    unattended: int
    severity: Severity
    first: Moment
    last: Moment
    strip: list[int]


def alert_groups(alerts: QuerySet[Alert], *, by: str, hours: int, now: datetime) -> list[AlertGroup]:
    """The groups, the most severe and largest first: at most MOST_GROUPS. The first bar also counts
    alerts opened before `hours`."""
    keyed = _keyed(alerts, by)
    names = [NAMES[by]] if by in NAMES else []
    rows = list(
        keyed.values("key", *names)
        .annotate(
            count=Count("id"),
            unattended=Count("id", filter=Q(state__in=UNATTENDED_STATES)),
            gravest=Max("rank"),
            first=Min("opened_at"),
            last=Max("opened_at"),
        )
        .order_by("-gravest", "-count", "key")[:MOST_GROUPS]
    )
    strips = _strips(keyed, [row["key"] for row in rows], by, hours, now)
    return [
        {
            "key": str(row["key"]),
            "name": str(row[names[0]] if names else row["key"]),
            "count": row["count"],
            "unattended": row["unattended"],
            "severity": list(Severity)[row["gravest"]],
            "first": iso(row["first"]),
            "last": iso(row["last"]),
            "strip": strips[row["key"]],
        }
        for row in rows
    ]


def _keyed(alerts: QuerySet[Alert], by: str) -> QuerySet[Any]:
    if by == "query":
        return alerts.annotate(key=F("query"))
    if by == "region":
        return alerts.filter(query__regions__isnull=False).annotate(key=F("query__regions"))
    # An alert of a pair is in the groups of both.
    return alerts.annotate(key=Func(F("entities"), function="unnest", output_field=TextField()))


def _strips(keyed: QuerySet[Any], keys: Sequence[Any], by: str, hours: int, now: datetime) -> dict[Any, list[int]]:
    begin = now - timedelta(hours=hours)
    seconds = Extract("opened_at", "epoch", output_field=FloatField())
    bar = Func(seconds, Value(begin.timestamp()), Value(now.timestamp()), Value(BARS), function="width_bucket", output_field=IntegerField())
    strips = {key: [0] * BARS for key in keys}
    shown = keyed.filter(entities__overlap=keys) if by == "entity" else keyed.filter(key__in=keys)
    for row in shown.annotate(bar=bar).values("key", "bar").annotate(n=Count("id")):
        if row["key"] in strips:
            strips[row["key"]][min(max(row["bar"], 1), BARS) - 1] += row["n"]
    return strips
