"""The alerts that the desk's filters leave as rows of a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from webapp.accounts.permissions import AnyUser
from webapp.alerts.desk import Order, pieces
from webapp.alerts.models import Alert, Notification, RoutingRule
from webapp.alerts.rows import ListedAlertRow, listed_row
from webapp.config.moments import iso_of_event
from webapp.config.openapi import Moment
from webapp.config.tables import PlacedRow
from webapp.detections.evidence import evidence_by_key
from webapp.queries.models import Query

AT_ONCE = 2_000
COLUMNS = (
    "id", "feed", "query", "query_name", "kind", "entities", "value", "start", "end", "start_at", "end_at", "severity", "state", "opened_at",
    "over_at", "acknowledged_at", "acknowledged_by", "assignee", "resolved_at", "resolved_by", "resolution", "comments", "regions", "rules", "muted",
    "detection",
)  # fmt: skip


class ExportedAlertRow(ListedAlertRow):
    """An alert as in files. `start_at`, `end_at`: event time of feeds that count milliseconds;
    `regions`: stored ones that its query names; `rules`: those by which it was sent."""

    start_at: Moment | None
    end_at: Moment | None
    regions: list[str]
    rules: list[str]


def rows_of(alerts: QuerySet[Alert], *, user: AnyUser, order: Order, most: int, with_places: bool) -> Iterator[PlacedRow]:
    """At most `most` alerts of `alert_list` in this order. Read in pieces: no statement takes
    long, however many there are. `with_places`: each with its evidence."""
    for piece in pieces(alerts, order, size=AT_ONCE, most=most):
        regions, rules = _regions_of(piece), _rules_of(piece, user)
        evidence = evidence_by_key([(alert.feed_id, bytes(alert.detection_key), alert.start) for alert in piece]) if with_places else {}
        for alert in piece:
            yield _row(alert, regions, rules), evidence.get((alert.feed_id, bytes(alert.detection_key)))


def _row(alert: Alert, regions: Mapping[int, list[str]], rules: Mapping[int, list[str]]) -> ExportedAlertRow:
    return {
        **listed_row(alert),
        "start_at": iso_of_event(alert.start, alert.feed.time),
        "end_at": iso_of_event(alert.end, alert.feed.time),
        "regions": regions.get(alert.query_id, []),
        "rules": rules.get(alert.pk, []),
    }


def _regions_of(alerts: Sequence[Alert]) -> dict[int, list[str]]:
    """By query."""
    named = Query.regions.through.objects.filter(query__in={alert.query_id for alert in alerts})
    return _listed(named.order_by("region__name").values_list("query", "region__name"))


def _rules_of(alerts: Sequence[Alert], user: AnyUser) -> dict[int, list[str]]:
    """By alert: the rules that `user` may see."""
    by_rules = Notification.objects.filter(alert__in=[alert.pk for alert in alerts], rule__in=RoutingRule.objects.visible_to(user).values("pk"))
    return _listed(by_rules.order_by("rule__name").values_list("alert", "rule__name").distinct())


def _listed(pairs: Any) -> dict[int, list[str]]:
    found = defaultdict[int, list[str]](list)
    for key, name in pairs:
        found[key].append(name)
    return found
