"""How much one user, and one team, may have. Who is over a quota is told which, and how much of it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings

from engine.model.faults import Fault
from webapp.accounts.models import Team, User
from webapp.config.faults import OverQuota

NOUNS = {"queries": "queries", "vertices": "vertices of stored regions", "feeds": "feeds", "jobs": "jobs", "tokens": "tokens"}
Held = Callable[[dict[str, Any]], int]
"""How much there is of what the given field names: `{"owner": user}` or `{"team": team}`."""


def quota_check(name: str, *, held: Held, more: int, user: User | None = None, team: Team | None = None) -> None:
    """Raises OverQuota when `more` would be too much for the user or the team. Superusers have no quota of their own.

    To be called in the transaction that makes the thing: it holds the user's and the team's row, so that two at once are counted both.
    """
    if more <= 0:
        return
    if user is not None and not user.is_superuser:
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
        _check(f"Your quota of {NOUNS[name]}", settings.USER_QUOTAS[name], held({"owner": user}), more)
    if team is not None and name in settings.TEAM_QUOTAS:
        Team.objects.select_for_update(no_key=True).only("pk").get(pk=team.pk)
        _check(f"The quota of {NOUNS[name]} of the team {team}", settings.TEAM_QUOTAS[name], held({"team": team}), more)


def _check(whose: str, limit: int, used: int, more: int) -> None:
    if used + more > limit:
        told = f"{whose} is {limit:,}: {used:,} are there, {more:,} more are too many. Remove some, or ask an administrator for more."
        raise OverQuota([Fault("", told)])
