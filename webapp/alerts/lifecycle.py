"""Which answers open an alert, and which end it. One open interval is one alert.

- `border`: being inside is an interval; `in` opens, the next `out` of the same entity ends. The
  same the other way round, for alerts about
everything that leaves.
- Families that answer with intervals: the alert is open while the answer's end is null.
- All other answers are instants or already closed: the alert waits for a user.

An alert that has ended stays on the desk until someone acknowledges it; one that had been
acknowledged before is resolved by its end. A retracted answer never held: its alert is resolved
immediately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.utils import timezone

from engine.families import FAMILIES
from engine.sinks.facts import StoredFact
from webapp.alerts.models import Alert, AlertState, AlertStep, Resolution, Step

ENDED_BY = {(name, kind): ending for name, family in FAMILIES.items() for kind, ending in family.ends.items()}
"""(family, kind) of an opening answer -> kind of the answer that ends it."""

OpenKey = tuple[int, str, tuple[str, ...]]
"""Query, opening kind, entities."""


@dataclass(frozen=True)
class Rule:
    """The settings of a query that its alerts need."""

    family: str
    severity: str
    kinds: frozenset[str]


@dataclass
class BatchAlerts:
    """The alerts that a batch may touch. Facts are taken in order of time, so the outcome does not
    depend on batch boundaries."""

    feed_id: int
    rules: Mapping[int, Rule]
    by_key: dict[bytes, Alert]
    open: dict[OpenKey, list[Alert]]
    changed: dict[bytes, Alert] = field(default_factory=dict)
    steps: list[AlertStep] = field(default_factory=list)

    def take(self, fact: StoredFact) -> None:
        """Opens, ends, retracts or reopens an alert for `fact`."""
        rule = self.rules.get(fact.query_id)
        if rule is None:
            return
        if fact.weight and (opening := ENDED_BY.get((rule.family, fact.kind))) is not None:
            for alert in self.open.pop((fact.query_id, opening, tuple(fact.entities)), []):
                self._end(alert, end=fact.start, closing_key=fact.key)
        known = self.by_key.get(fact.key)
        if known is not None:
            self._revise(known, fact)
        elif fact.weight and fact.new and fact.kind in rule.kinds:
            self._open(fact, rule)

    def _open(self, fact: StoredFact, rule: Rule) -> None:
        paired = (rule.family, fact.kind) in ENDED_BY
        alert = Alert(
            query_id=fact.query_id,
            query_version=fact.version,
            feed_id=self.feed_id,
            detection_key=fact.key,
            kind=fact.kind,
            entities=fact.entities,
            value=fact.value,
            start=fact.start,
            end=None if paired else fact.end,
            severity=rule.severity,
        )
        self.by_key[fact.key] = self.changed[fact.key] = alert
        if paired:
            self.open.setdefault((fact.query_id, fact.kind, tuple(fact.entities)), []).append(alert)

    def _revise(self, alert: Alert, fact: StoredFact) -> None:
        """The fact was asserted before: it may have ended, been retracted, or hold again."""
        if not fact.weight:
            self._retract(alert)
        elif alert.resolution == Resolution.WITHDRAWN or (fact.end is None and alert.resolution == Resolution.ENDED and alert.closing_key is None):
            self._reopen(alert, fact.end)
        elif alert.closing_key is None and fact.end != alert.end and fact.end is not None and alert.end is None:
            self._end(alert, end=fact.end, closing_key=None)

    def _end(self, alert: Alert, *, end: int, closing_key: bytes | None) -> None:
        alert.end, alert.closing_key = end, closing_key
        self._note(alert, end_by_itself(alert, Resolution.ENDED))

    def _retract(self, alert: Alert) -> None:
        alert.closing_key = None
        step = None
        if alert.state != AlertState.RESOLVED:
            alert.state, alert.resolution, alert.resolved_at = AlertState.RESOLVED, Resolution.WITHDRAWN, timezone.now()
            step = AlertStep(alert=alert, action=Step.WITHDRAWN)
        self._note(alert, step)

    def _reopen(self, alert: Alert, end: int | None) -> None:
        if alert.state == AlertState.RESOLVED:
            alert.state = AlertState.ACKNOWLEDGED if alert.acknowledged_at else AlertState.NEW
        alert.end, alert.resolution, alert.resolved_at, alert.over_at = end, "", None, None
        self._note(alert, AlertStep(alert=alert, action=Step.RESUMED))

    def _note(self, alert: Alert, step: AlertStep | None) -> None:
        self.changed[bytes(alert.detection_key)] = alert
        if step is not None:
            self.steps.append(step)


def end_by_itself(alert: Alert, why: Resolution) -> AlertStep | None:
    """The alert's answer has ended: resolved if someone had acknowledged it, else it stays open.
    None: a user had resolved it."""
    if alert.state == AlertState.RESOLVED:
        return None
    alert.over_at, alert.resolution = timezone.now(), why
    if alert.state == AlertState.ACKNOWLEDGED:
        alert.state, alert.resolved_at = AlertState.RESOLVED, alert.over_at
    return AlertStep(alert=alert, action=Step(why.value))


def in_order(facts: Sequence[StoredFact]) -> list[StoredFact]:
    """By time; facts of equal time in the order in which the operator asserted them."""
    return sorted(facts, key=lambda fact: fact.start)
