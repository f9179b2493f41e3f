"""Decisions of users on alerts: each is one step with user, time and comment, and is published to
all viewers.

A decision is stored under the lock of the feed's head row: if two users act at the same time, one
is first, and the other sees who it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Value, When
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy

from engine.model.faults import Fault, refuse
from engine.model.messages import Message, untranslated
from webapp.accounts.models import User
from webapp.alerts.models import OPEN_STATES, Alert, AlertState, AlertStep, Feedback, Resolution, Step
from webapp.alerts.selectors import handlers_of
from webapp.alerts.services import BATCH, alerts_publish, head_lock
from webapp.config.faults import Conflict

FROM: Mapping[Step, Sequence[str]] = {
    Step.SEEN: [AlertState.NEW],
    Step.ACKNOWLEDGED: [AlertState.NEW, AlertState.SEEN, AlertState.ASSIGNED, AlertState.REOPENED],
    Step.ASSIGNED: OPEN_STATES,
    Step.RESOLVED: OPEN_STATES,
    Step.REOPENED: [AlertState.RESOLVED],
}
"""The states that each step leads out of."""
DONE = {
    Step.ACKNOWLEDGED: gettext_lazy("%(who)s acknowledged this alert at %(at)s UTC%(said)s. Look at it again before you decide."),
    Step.RESOLVED: gettext_lazy("%(who)s resolved this alert at %(at)s UTC%(said)s. Look at it again before you decide."),
    Step.REOPENED: gettext_lazy("%(who)s reopened this alert at %(at)s UTC%(said)s. Look at it again before you decide."),
}


@dataclass(frozen=True)
class Decision:
    """A step by a user. `assignee`: the user to whom the alert is assigned."""

    step: Step
    user: User
    comment: str = ""
    assignee: User | None = None


def alert_decide(*, alert: Alert, decision: Decision, revision: int | None = None) -> None:
    """Takes one step with one alert. `revision`: the one that the user saw.

    Raises Conflict, with who did what, when someone decided since or the alert's state no longer
    permits the step. Repeating one's own step changes nothing.
    """
    _check_assignee([alert], decision)
    with transaction.atomic():
        head_lock(alert.feed_id)
        present = Alert.objects.get(pk=alert.pk)
        fits = present.state in FROM[decision.step]
        is_stale = revision is not None and revision != present.revision
        if decision.step != Step.SEEN and (is_stale or not fits):
            last = _last_decision(present)
            if last is not None and last.author_id == decision.user.pk and last.action == decision.step and not fits:
                return
            raise Conflict([Fault("", untranslated(_conflict(present, last)))])
        _decide(alert.feed_id, [alert.pk], decision)


def alerts_decide(*, alerts: Sequence[Alert], decision: Decision) -> list[int]:
    """Takes one step with many alerts. Returns the ids of those that changed; the
    others no longer permitted it."""
    _check_assignee(alerts, decision)
    changed: list[int] = []
    for feed_id, ids in _by_feed(alerts):
        with transaction.atomic():
            head_lock(feed_id)
            changed += _decide(feed_id, ids, decision)
    return sorted(changed)


def alert_comment(*, alert: Alert, user: User, text: str) -> AlertStep:
    """Adds a comment on the alert."""
    return AlertStep.objects.create(alert=alert, author=user, text=text, action=Step.COMMENTED)


def alert_judge(*, alert: Alert, user: User, verdict: str, reason: str = "") -> Feedback:
    """A user's verdict on the answer behind the alert: each user's last one counts."""
    values = {"verdict": verdict, "reason": reason, "at": timezone.now()}
    return Feedback.objects.update_or_create(alert=alert, author=user, defaults=values)[0]


def _decide(feed_id: int, ids: Sequence[int], decision: Decision) -> list[int]:
    """The ids of those alerts that the step changed. Under the lock of the feed's head row."""
    fitting = Alert.objects.filter(pk__in=ids, state__in=FROM[decision.step])
    changed = list(fitting.order_by("pk").values_list("pk", flat=True))
    if changed:
        _write(Alert.objects.filter(pk__in=changed), decision)
        steps = [
            AlertStep(alert_id=pk, action=decision.step, author=decision.user, assignee=decision.assignee, text=decision.comment) for pk in changed
        ]
        AlertStep.objects.bulk_create(steps, batch_size=BATCH)
        alerts_publish(feed_id, changed)
    return changed


def _write(alerts: QuerySet[Alert], decision: Decision) -> None:
    now = timezone.now()
    user = decision.user
    fields: dict[str, Any]
    match decision.step:
        case Step.SEEN:
            # Opening an alert decides nothing, so it cannot conflict with another user's change.
            alerts.update(state=AlertState.SEEN)
            return
        case Step.ACKNOWLEDGED:
            is_over = Q(over_at__isnull=False)
            fields = {
                "state": Case(When(is_over, then=Value(AlertState.RESOLVED)), default=Value(AlertState.ACKNOWLEDGED)),
                "resolved_at": Case(When(is_over, then=Value(now)), default=Value(None)),
                "acknowledged_at": now,
                "acknowledged_by": user,
            }
        case Step.ASSIGNED:
            fields = {"state": AlertState.ASSIGNED, "assignee": decision.assignee}
        case Step.RESOLVED:
            fields = {"state": AlertState.RESOLVED, "resolution": Resolution.PERSON, "resolved_at": now, "resolved_by": user}
        case _:
            ended = Case(When(over_at__isnull=False, then=Value(Resolution.ENDED)), default=Value(""))
            cleared = dict.fromkeys(("acknowledged_at", "acknowledged_by", "resolved_at", "resolved_by", "assignee"))
            fields = {"state": AlertState.REOPENED, "resolution": ended, **cleared}
    alerts.update(revision=F("revision") + 1, **fields)


def _check_assignee(alerts: Sequence[Alert], decision: Decision) -> None:
    if (decision.assignee is None) == (decision.step == Step.ASSIGNED):
        raise refuse("/assignee", Message("Name the assignee if, and only if, the alert is assigned."))
    if decision.assignee is None:
        return
    for query in {alert.query_id: alert.query for alert in alerts}.values():
        if not handlers_of(query).filter(pk=decision.assignee.pk).exists():
            raise refuse("/assignee", Message("{user} may not handle alerts of {query}.", user=decision.assignee.username, query=repr(query.name)))


def _last_decision(alert: Alert) -> AlertStep | None:
    decisions = alert.steps.filter(action__in=[*DONE, Step.ASSIGNED]).select_related("author", "assignee")
    return decisions.order_by("-id").first()


def _conflict(alert: Alert, last: AlertStep | None) -> str:
    """Who did what, as a sentence."""
    if last is None:
        return gettext("This alert is %(state)s already.") % {"state": gettext(AlertState(alert.state).label).lower()}
    somebody = gettext("Somebody")
    values = {
        "who": last.author.username if last.author is not None else somebody,
        "to": last.assignee.username if last.assignee else somebody,
        "at": f"{last.at:%H:%M:%S}",
        "said": f": “{last.text}”" if last.text else "",
    }
    if last.action == Step.ASSIGNED:
        return gettext("%(who)s assigned this alert to %(to)s at %(at)s UTC%(said)s. Look at it again before you decide.") % values
    return str(DONE[Step(last.action)]) % values


def _by_feed(alerts: Sequence[Alert]) -> list[tuple[int, list[int]]]:
    groups: dict[int, list[int]] = {}
    for alert in alerts:
        groups.setdefault(alert.feed_id, []).append(alert.pk)
    return sorted(groups.items())
