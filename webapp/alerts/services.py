"""What opens, ends and changes alerts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from engine.model.faults import Fault, Refused, refuse
from webapp.accounts.models import User
from webapp.alerts.lifecycle import ENDED_BY, Change, Ledger, OpenKey, Rule, in_order
from webapp.alerts.models import Alert, AlertComment, AlertState, Channel, Resolution
from webapp.alerts.selectors import alert_rows, alerts_told, choosing_channels
from webapp.queries.models import Query

BATCH = 1000
CHANGED_FIELDS = ["end", "state", "resolution", "resolved_at", "closing_key"]


def alerts_record(*, feed_id: int, changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Opens, ends and withdraws alerts for facts that the sink has just stored, and returns them as frames carry them.

    To be called in the sink's transaction, under the lock of the feed's head row.
    """
    rules = _rules({change.query_id for change in changes})
    relevant = [change for change in changes if change.query_id in rules]
    if not relevant:
        return []
    ledger = Ledger(feed_id, rules, _known(feed_id, relevant), _open(relevant, rules))
    for change in in_order(relevant):
        ledger.take(change)
    touched = list(ledger.changed.values())
    known = [alert for alert in touched if alert.pk is not None]
    Alert.objects.bulk_create([alert for alert in touched if alert.pk is None], batch_size=BATCH)
    Alert.objects.bulk_update(known, CHANGED_FIELDS, batch_size=BATCH)
    return alert_rows(sorted(touched, key=lambda alert: alert.pk))


def _rules(query_ids: set[int]) -> dict[int, Rule]:
    rows = Query.objects.filter(~Q(alert_kinds=[]), pk__in=query_ids, deleted_at=None).values_list("pk", "family", "severity", "alert_kinds")
    return {pk: Rule(family, severity, frozenset(kinds)) for pk, family, severity, kinds in rows}


def _known(feed_id: int, changes: Sequence[Change]) -> dict[bytes, Alert]:
    found = Alert.objects.filter(feed=feed_id, detection_key__in=[change.key for change in changes]).select_related("acknowledged_by")
    return {bytes(alert.detection_key): alert for alert in found}


def _open(changes: Sequence[Change], rules: dict[int, Rule]) -> dict[OpenKey, list[Alert]]:
    """Alerts that still wait for the answer that ends them, of the queries and entities in `changes`."""
    ending = [change for change in changes if (rules[change.query_id].family, change.kind) in ENDED_BY]
    waiting: dict[OpenKey, list[Alert]] = {}
    if ending:
        entities = {tuple(change.entities) for change in ending}
        found = Alert.objects.filter(
            ~Q(state=AlertState.RESOLVED), query__in={change.query_id for change in ending}, end=None, entities__in=[list(ids) for ids in entities]
        )
        for alert in found.select_related("acknowledged_by"):
            waiting.setdefault((alert.query_id, alert.kind, tuple(alert.entities)), []).append(alert)
    return waiting


def alerts_acknowledge(*, alerts: Sequence[Alert], user: User, comment: str = "") -> list[int]:
    """Somebody looks after these alerts: new -> acknowledged. The ids of those that changed; the others were past that."""
    now = timezone.now()
    changed: list[int] = []
    for feed_id, ids in _by_feed(alerts):
        with transaction.atomic():
            _lock_head(feed_id)
            waiting = list(Alert.objects.filter(pk__in=ids, state=AlertState.NEW).values_list("pk", flat=True))
            Alert.objects.filter(pk__in=waiting).update(state=AlertState.ACKNOWLEDGED, acknowledged_at=now, acknowledged_by=user)
            _comment(waiting if len(alerts) > 1 else ids, user, comment)
            _tell(feed_id, waiting)
        changed += waiting
    return sorted(changed)


def alerts_resolve(*, alerts: Sequence[Alert], user: User, comment: str = "") -> list[int]:
    """These alerts are done with: -> resolved. The ids of those that changed; the others were resolved before."""
    now = timezone.now()
    changed: list[int] = []
    for feed_id, ids in _by_feed(alerts):
        with transaction.atomic():
            _lock_head(feed_id)
            waiting = list(Alert.objects.filter(~Q(state=AlertState.RESOLVED), pk__in=ids).values_list("pk", flat=True))
            Alert.objects.filter(pk__in=waiting).update(state=AlertState.RESOLVED, resolution=Resolution.PERSON, resolved_at=now, resolved_by=user)
            _comment(waiting if len(alerts) > 1 else ids, user, comment)
            _tell(feed_id, waiting)
        changed += waiting
    return sorted(changed)


def alerts_end_with_queries(*, feed_id: int, query_ids: Sequence[int]) -> None:
    """Removed queries of one feed cannot end their alerts any more. To be called within the removal's transaction."""
    _lock_head(feed_id)
    waiting = list(Alert.objects.filter(~Q(state=AlertState.RESOLVED), query__in=query_ids).values_list("pk", flat=True))
    Alert.objects.filter(pk__in=waiting).update(state=AlertState.RESOLVED, resolution=Resolution.REMOVED, resolved_at=timezone.now())
    _tell(feed_id, waiting)


def alerts_end_with_versions(*, feed_id: int, keys: set[tuple[int, int]], at: int) -> list[dict[str, Any]]:
    """Alerts of versions that the job has left end at `at` if they still hold; they, as frames carry them. Under the lock of the feed's head row."""
    holding = Alert.objects.filter(~Q(state=AlertState.RESOLVED), feed=feed_id, query__in={query for query, _ in keys}, end=None)
    ended = [alert for alert in holding.select_related("acknowledged_by") if (alert.query_id, alert.query_version) in keys]
    for alert in ended:
        alert.end, alert.state, alert.resolution, alert.resolved_at = at, AlertState.RESOLVED, Resolution.CHANGED, timezone.now()
    Alert.objects.bulk_update(ended, CHANGED_FIELDS, batch_size=BATCH)
    return alert_rows(ended)


def query_channels_set(*, query: Query, user: User, channels: Sequence[Channel]) -> None:
    """Makes `channels` those of the channels for chosen queries that carry this query's alerts.

    Channels that `user` does not see stay as they are. Raises Refused for one that would change and is not the user's to change.
    """
    wanted = {channel.pk for channel in channels}
    faults = []
    having = set(query.channels.values_list("pk", flat=True))
    for channel in choosing_channels(user=user).with_editable(user):  # type: ignore[attr-defined]  # a queryset of owned things
        has = channel.pk in having
        if has == (channel.pk in wanted):
            continue
        if not channel.editable:
            faults.append(Fault("/channels", f"You may see the channel {channel.name!r} but not change what goes to it."))
        elif has:
            channel.queries.remove(query)
        else:
            channel.queries.add(query)
    if faults:
        raise Refused(faults)


def channels_take(*, queries: Sequence[Query], user: User, channels: Sequence[Channel]) -> None:
    """Has those of `channels` that are for chosen queries carry the alerts of these, too. Raises Refused for one that is not the user's to change."""
    ids = [channel.pk for channel in channels]
    for channel in choosing_channels(user=user).with_editable(user).filter(pk__in=ids):  # type: ignore[attr-defined]  # a queryset of owned things
        if not channel.editable:
            raise refuse("/channels", f"You may see the channel {channel.name!r} but not change what goes to it.")
        channel.queries.add(*queries)


def alert_comment(*, alert: Alert, user: User, text: str) -> AlertComment:
    """Adds what somebody said about the alert."""
    return AlertComment.objects.create(alert=alert, author=user, text=text)


def _by_feed(alerts: Sequence[Alert]) -> list[tuple[int, list[int]]]:
    groups: dict[int, list[int]] = {}
    for alert in alerts:
        groups.setdefault(alert.feed_id, []).append(alert.pk)
    return sorted(groups.items())


def _comment(ids: Sequence[int], user: User, comment: str) -> None:
    if comment:
        AlertComment.objects.bulk_create([AlertComment(alert_id=pk, author=user, text=comment) for pk in ids])


def _lock_head(feed_id: int) -> None:
    """The head row before the alerts' rows: the sink takes the locks in this order, so neither waits for the other for ever."""
    from webapp.detections.services import outbox_append  # the sink's module imports this one

    outbox_append(feed_id=feed_id)


def _tell(feed_id: int, ids: list[int]) -> None:
    """Puts the alerts as they are now into the feed's outbox."""
    from webapp.detections.services import outbox_append

    if ids:
        outbox_append(feed_id=feed_id, alerts=alert_rows(alerts_told(ids=ids)))
