"""Statistics of the desk: open alerts over time, response times, and the queries and
entities with the most alerts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, TypedDict, cast

from django.db.models import Aggregate, Count, DurationField, ExpressionWrapper, F, FloatField, Func, IntegerField, Q, QuerySet, TextField, Value
from django.db.models.functions import Extract

from webapp.alerts.models import Alert, AlertState, Verdict
from webapp.config.openapi import Moment
from webapp.queries.models import Severity

POINTS = 48
NOISIEST = 10
QUANTILES = (0.5, 0.9)


class Quantile(Aggregate):
    """PostgreSQL's percentile_cont."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(%(quantile)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


class Quantiles(TypedDict):
    """In seconds; null without alerts."""

    median: float | None
    p90: float | None


class Noisy(TypedDict):
    """A query (`key`: its id) or an entity (0) with the number of its alerts."""

    key: int
    name: str
    count: int


class SeverityLines(TypedDict):
    """How many alerts of each severity were open at each of `times`."""

    info: list[int]
    low: list[int]
    high: list[int]
    critical: list[int]


class AlertNumbers(TypedDict):
    """Statistics of the desk."""

    times: list[Moment]
    open: SeverityLines
    opened: int
    seconds_to_acknowledge: Quantiles
    seconds_to_resolve: Quantiles
    ended_unattended: int
    noisiest_queries: list[Noisy]
    noisiest_entities: list[Noisy]
    verdicts: dict[str, int]


def alert_numbers(alerts: QuerySet[Alert], *, hours: int, now: datetime) -> AlertNumbers:
    """`times`: the ends of POINTS equal spans of the last `hours`; `open`: how many alerts of
    each severity were open then.

    An alert that was reopened counts as open since it was opened.
    """
    begin = now - timedelta(hours=hours)
    step = (now - begin) / POINTS
    recent = alerts.filter(opened_at__gte=begin)
    return {
        "times": [(begin + step * (n + 1)).isoformat() for n in range(POINTS)],
        "open": _open_over_time(alerts, begin, now),
        "opened": recent.count(),
        "seconds_to_acknowledge": _how_long(recent, "acknowledged_at"),
        "seconds_to_resolve": _how_long(recent.filter(resolved_by__isnull=False), "resolved_at"),
        "ended_unattended": recent.filter(over_at__isnull=False, acknowledged_at=None).count(),
        "noisiest_queries": _noisiest(recent.annotate(name=F("query__name"), key=F("query"))),
        "noisiest_entities": _noisiest(recent.annotate(name=Func(F("entities"), function="unnest", output_field=TextField()), key=Value(0))),
        "verdicts": {verdict: recent.filter(feedback__verdict=verdict).distinct().count() for verdict in Verdict.values},
    }


def _open_over_time(alerts: QuerySet[Alert], begin: datetime, now: datetime) -> SeverityLines:
    before = alerts.filter(opened_at__lt=begin).filter(Q(resolved_at=None) | Q(resolved_at__gte=begin))
    start = dict(before.values_list("severity").annotate(n=Count("id")))
    opened, resolved = _histogram(alerts, "opened_at", begin, now), _histogram(alerts.filter(state=AlertState.RESOLVED), "resolved_at", begin, now)
    lines = {}
    for severity in Severity.values:
        count, line = start.get(severity, 0), []
        for bar in range(1, POINTS + 1):
            count += opened.get((severity, bar), 0) - resolved.get((severity, bar), 0)
            line.append(count)
        lines[severity] = line
    return cast(SeverityLines, lines)


def _histogram(alerts: QuerySet[Alert], column: str, begin: datetime, now: datetime) -> dict[tuple[str, int], int]:
    within = alerts.filter(**{f"{column}__gte": begin, f"{column}__lt": now})
    seconds = Extract(column, "epoch", output_field=FloatField())
    bar = Func(seconds, Value(begin.timestamp()), Value(now.timestamp()), Value(POINTS), function="width_bucket", output_field=IntegerField())
    return {(severity, n): count for severity, n, count in within.annotate(bar=bar).values_list("severity", "bar").annotate(n=Count("id"))}


def _how_long(alerts: QuerySet[Alert], column: str) -> Quantiles:
    taken = ExpressionWrapper(F(column) - F("opened_at"), output_field=DurationField())
    seconds = Extract(taken, "epoch", output_field=FloatField())
    done = alerts.filter(**{f"{column}__isnull": False})
    median, ninety = (Quantile(seconds, quantile=q) for q in QUANTILES)
    found = done.aggregate(median=median, p90=ninety)
    return {"median": found["median"], "p90": found["p90"]}


def _noisiest(alerts: QuerySet[Any]) -> list[Noisy]:
    counted = alerts.values("key", "name").annotate(count=Count("id")).order_by("-count", "name")[:NOISIEST]
    return [{"key": row["key"], "name": row["name"], "count": row["count"]} for row in counted]
