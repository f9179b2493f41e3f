"""Reads and saves routing rules."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Prefetch, QuerySet

from webapp.accounts.models import User
from webapp.accounts.permissions import AnyUser
from webapp.accounts.quotas import quota_check
from webapp.alerts.models import Channel, Notification, RoutingRule, Shift
from webapp.alerts.routing import SETS
from webapp.alerts.selectors import rules_held
from webapp.alerts.waiting import planner_stop, waiting_free
from webapp.config.room import hold
from webapp.feeds.models import Region
from webapp.queries.models import Query

HIDEABLE: dict[str, Any] = {"queries": Query, "regions": Region, "channels": Channel, "shifts": Shift}


def rule_list(*, user: AnyUser) -> QuerySet[RoutingRule]:
    """The rules that `user` may see, with only those choices that `user` may see."""
    rules = RoutingRule.objects.visible_to(user).with_editable(user).select_related("owner", "team", "feed")
    shown = [Prefetch(name, model.objects.visible_to(user)) for name, model in HIDEABLE.items()]
    return rules.prefetch_related(*shown, "teams", "people").order_by("id")


@transaction.atomic
def rule_save(*, user: User, rule: RoutingRule | None = None, **fields: Any) -> RoutingRule:
    """A new rule of `user`'s, or `rule` with the given changes. Choices that `user` may not see
    are kept. Raises OverQuota."""
    with_timing = rule is not None and not fields.keys().isdisjoint(RoutingRule.TIMING)
    if with_timing:
        planner_stop()
    # Each alert is matched against all of them.
    team = fields.get("team")
    if rule is None:
        quota_check("rules", user=user, team=team, more=1, held=rules_held)
    elif team is not None and team != rule.team:
        quota_check("rules", team=team, more=1, held=rules_held)
    sets = {name: list(fields.pop(name)) for name in SETS if name in fields}
    saved = RoutingRule(owner=user) if rule is None else hold(rule)
    before = saved.timing
    for name, value in fields.items():
        setattr(saved, name, value)
    saved.save()
    if with_timing and saved.timing != before:
        waiting_free(Notification.objects.filter(rule=saved))
    for name, chosen in sets.items():
        related = getattr(saved, name)
        hidden = related.exclude(pk__in=HIDEABLE[name].objects.visible_to(user).values("pk")) if name in HIDEABLE else related.none()
        related.set([*chosen, *hidden])
    return saved
