"""Services that open, end and change alerts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Q
from django.utils import timezone

from engine.model.faults import Fault, Refused, refuse
from engine.model.messages import Message
from engine.sinks.facts import StoredFact
from webapp.accounts.models import User
from webapp.alerts.lifecycle import ENDED_BY, BatchAlerts, OpenKey, Rule, end_by_itself, in_order
from webapp.alerts.models import Alert, AlertState, AlertStep, Channel, Mute, Resolution, Step
from webapp.alerts.rows import AlertRow, alert_rows
from webapp.alerts.selectors import alerts_by_id, choosing_channels
from webapp.detections.services import outbox_append
from webapp.queries.models import Query

BATCH = 1000
CHANGED_FIELDS = ["end", "state", "resolution", "resolved_at", "over_at", "closing_key"]


def alerts_record(*, feed_id: int, changes: Sequence[StoredFact]) -> list[AlertRow]:
    """Opens, ends and retracts alerts for facts that the sink has just stored, and returns
    them in the form of frames.

    To be called in the sink's transaction, under the lock of the feed's head row.
    """
    rules = _rules({change.query_id for change in changes})
    relevant = [change for change in changes if change.query_id in rules]
    if not relevant:
        return []
    alerts = BatchAlerts(feed_id, rules, _known(feed_id, relevant), _open(relevant, rules))
    for change in in_order(relevant):
        alerts.take(change)
    touched = list(alerts.changed.values())
    known = [alert for alert in touched if alert.pk is not None]
    _mute(feed_id, [alert for alert in touched if alert.pk is None])
    Alert.objects.bulk_create([alert for alert in touched if alert.pk is None], batch_size=BATCH)
    Alert.objects.bulk_update(known, CHANGED_FIELDS, batch_size=BATCH)
    AlertStep.objects.bulk_create(alerts.steps, batch_size=BATCH)
    return alert_rows(sorted(touched, key=lambda alert: alert.pk))


def _mute(feed_id: int, opening: Sequence[Alert]) -> None:
    """Applies mutes to alerts about to be opened."""
    now = timezone.now()
    present = Mute.objects.filter(feed=feed_id, ended_at=None, window_from__lte=now).exclude(window_until__lte=now) if opening else []
    for mute in present:
        editable = Query.objects.editable_by(mute.owner).filter(pk__in={alert.query_id for alert in opening})
        if mute.region_id is not None:
            editable = editable.filter(regions=mute.region_id)
        queries = set(editable.values_list("pk", flat=True)) & (
            {mute.query_id} if mute.query_id is not None else {alert.query_id for alert in opening}
        )
        for alert in opening:
            if alert.query_id in queries and set(mute.entities) <= set(alert.entities):
                alert.mute = mute


def _rules(query_ids: set[int]) -> dict[int, Rule]:
    rows = Query.objects.filter(~Q(alert_kinds=[]), pk__in=query_ids, deleted_at=None).values_list("pk", "family", "severity", "alert_kinds")
    return {pk: Rule(family, severity, frozenset(kinds)) for pk, family, severity, kinds in rows}


def _known(feed_id: int, changes: Sequence[StoredFact]) -> dict[bytes, Alert]:
    alerts = Alert.objects.filter(feed=feed_id, detection_key__in=[change.key for change in changes]).select_related("acknowledged_by", "assignee")
    return {bytes(alert.detection_key): alert for alert in alerts}


def _open(changes: Sequence[StoredFact], rules: dict[int, Rule]) -> dict[OpenKey, list[Alert]]:
    """Alerts that still wait for the answer that ends them, of the queries
    and entities in `changes`."""
    ending = [change for change in changes if (rules[change.query_id].family, change.kind) in ENDED_BY]
    waiting: dict[OpenKey, list[Alert]] = {}
    if ending:
        entities = {tuple(change.entities) for change in ending}
        alerts = Alert.objects.filter(
            ~Q(state=AlertState.RESOLVED), query__in={change.query_id for change in ending}, end=None, entities__in=[list(ids) for ids in entities]
        )
        for alert in alerts.select_related("acknowledged_by", "assignee"):
            waiting.setdefault((alert.query_id, alert.kind, tuple(alert.entities)), []).append(alert)
    return waiting


def alerts_end_with_queries(*, feed_id: int, query_ids: Sequence[int], **_: Any) -> None:
    """Resolves alerts of removed queries of one feed, because no answer will end them. To be called
    within the removal's transaction."""
    head_lock(feed_id)
    waiting = list(Alert.objects.filter(~Q(state=AlertState.RESOLVED), query__in=query_ids).values_list("pk", flat=True))
    Alert.objects.filter(pk__in=waiting).update(state=AlertState.RESOLVED, resolution=Resolution.REMOVED, resolved_at=timezone.now())
    AlertStep.objects.bulk_create([AlertStep(alert_id=pk, action=Step.REMOVED) for pk in waiting], batch_size=BATCH)
    alerts_publish(feed_id, waiting)


def alerts_end_with_versions(*, feed_id: int, keys: set[tuple[int, int]], at: int) -> list[AlertRow]:
    """Ends open alerts of versions that the job no longer runs, at `at`; returns them in the form
    of frames. Under the head row's lock."""
    holding = Alert.objects.filter(~Q(state=AlertState.RESOLVED), feed=feed_id, query__in={query for query, _ in keys}, end=None)
    ended = [alert for alert in holding.select_related("acknowledged_by", "assignee") if (alert.query_id, alert.query_version) in keys]
    for alert in ended:
        alert.end = at
    steps = [end_by_itself(alert, Resolution.CHANGED) for alert in ended]
    Alert.objects.bulk_update(ended, CHANGED_FIELDS, batch_size=BATCH)
    AlertStep.objects.bulk_create([step for step in steps if step is not None], batch_size=BATCH)
    return alert_rows(ended)


def query_channels_set(*, query: Query, user: User, channels: Sequence[Channel]) -> None:
    """Sets which of the channels limited to chosen queries carry this query's alerts.

    Channels that `user` does not see stay as they are. Raises Refused if the user may not change
    one that would change.
    """
    chosen = {channel.pk for channel in channels}
    faults = []
    having = set(query.channels.values_list("pk", flat=True))
    for channel in choosing_channels(user=user).with_editable(user):  # type: ignore[attr-defined]  # a queryset of owned things
        has = channel.pk in having
        if has == (channel.pk in chosen):
            continue
        if not channel.editable:
            faults.append(Fault("/channels", Message("You may see the channel {name} but not change what goes to it.", name=repr(channel.name))))
        elif has:
            channel.queries.remove(query)
        else:
            channel.queries.add(query)
    if faults:
        raise Refused(faults)


def channels_take(*, queries: Sequence[Query], user: User, channels: Sequence[Channel]) -> None:
    """Adds these queries to those of `channels` that are limited to chosen queries. Raises Refused
    for one that the user may not change."""
    ids = [channel.pk for channel in channels]
    for channel in choosing_channels(user=user).with_editable(user).filter(pk__in=ids):  # type: ignore[attr-defined]  # a queryset of owned things
        if not channel.editable:
            raise refuse("/channels", Message("You may see the channel {name} but not change what goes to it.", name=repr(channel.name)))
        channel.queries.add(*queries)


def head_lock(feed_id: int) -> None:
    """The head row is locked before the alerts' rows: the sink locks in the same order,
    which prevents deadlocks."""
    outbox_append(feed_id=feed_id)


def alerts_publish(feed_id: int, ids: Sequence[int]) -> None:
    """Appends the current alerts to the feed's outbox."""
    if ids:
        outbox_append(feed_id=feed_id, alerts=alert_rows(alerts_by_id(ids=list(ids))))
