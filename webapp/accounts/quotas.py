"""How much one user, and one team, may have. A user over a quota is shown which,
and how much of it is used.

The server's settings apply unless an administrator has set something else for a user or team.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from engine.model.faults import Fault
from engine.model.messages import Message
from webapp.accounts.models import ApiToken, Team, User
from webapp.audit.services import record
from webapp.config.faults import OverQuota
from webapp.config.room import hold

NOUNS = {
    "queries": Message("queries"),
    "vertices": Message("vertices of stored regions"),
    "feeds": Message("feeds"),
    "jobs": Message("jobs"),
    "tokens": Message("tokens"),
    "rows": Message("rows a second over HTTP"),
    "uploads": Message("megabytes of uploaded files"),
    "channels": Message("channels"),
    "rules": Message("routing rules"),
    "messages": Message("messages to channels an hour"),
}
BY_TIME = {"rows", "messages"}
"""Quotas that recover with time."""
Held = Callable[[dict[str, Any]], int]
"""How much the holder in the given field uses: `{"owner": user}` or `{"team": team}`."""
COUNTED: dict[str, Held] = {}
"""How to count the use of each quota; every app adds its own when the program starts."""


def defaults_of(holder: User | Team) -> Mapping[str, int]:
    """The server's quotas of such a holder, by name."""
    defaults: dict[str, int] = settings.USER_QUOTAS if isinstance(holder, User) else settings.TEAM_QUOTAS
    return defaults


def quota_of(holder: User | Team, name: str) -> int:
    """How much the holder may have. Superusers have no limits."""
    return int(holder.quotas.get(name, defaults_of(holder)[name]))


def quota_check(name: str, *, held: Held, more: int, user: User | None = None, team: Team | None = None) -> None:
    """Raises OverQuota when `more` would be too much for the user or the team. Superusers have no
    personal quota.

    To be called in the transaction that creates the object: it locks the user's and the team's row,
    so that concurrent requests are both counted.
    """
    if more <= 0:
        return
    if user is not None and not user.is_superuser:
        locked = hold(user, "quotas")
        _check(name, Message("Your quota of {things}", things=NOUNS[name]), quota_of(locked, name), held({"owner": user}), more)
    if team is not None and name in settings.TEAM_QUOTAS:
        team_row = hold(team, "quotas")
        _check(
            name,
            Message("The quota of {things} of the team {team}", things=NOUNS[name], team=team),
            quota_of(team_row, name),
            held({"team": team}),
            more,
        )


def _check(name: str, subject: Message, limit: int, used: int, more: int) -> None:
    if used + more > limit:
        remedy = Message("Try again later") if name in BY_TIME else Message("Remove some")
        raise OverQuota(
            [
                Fault(
                    "",
                    Message(
                        "{whose} is {limit:,}: {used:,} are there, {more:,} more are too many. {remedy}, or ask an administrator for more.",
                        whose=subject,
                        limit=limit,
                        used=used,
                        more=more,
                        remedy=remedy,
                    ),
                )
            ]
        )


def quota_room(name: str, *, held: Held, user: User, team: Team | None = None) -> float:
    """How much more the quotas of the user and of the team leave; infinite for a superuser."""
    rooms = [] if user.is_superuser else [quota_of(user, name) - held({"owner": user})]
    if team is not None and name in settings.TEAM_QUOTAS:
        rooms.append(quota_of(team, name) - held({"team": team}))
    return min(rooms, default=float("inf"))


@dataclass(frozen=True)
class Quota:
    """One quota of a holder. `used`: null for rates per second; `default`: the server's."""

    name: str
    what: str
    limit: int
    default: int
    used: int | None


def quota_list(holder: User | Team) -> list[Quota]:
    """All quotas of a user or a team, with how much of them is used."""
    owner_filter = {"owner": holder} if isinstance(holder, User) else {"team": holder}
    return [
        Quota(name, NOUNS[name], quota_of(holder, name), default, COUNTED[name](owner_filter) if name in COUNTED else None)
        for name, default in defaults_of(holder).items()
    ]


def tokens_held(owner_filter: dict[str, Any]) -> int:
    """How many tokens a user has."""
    return ApiToken.objects.filter(user=owner_filter["owner"]).count()


@transaction.atomic
def quotas_set(*, holder: User | Team, limits: Mapping[str, int | None]) -> None:
    """Sets the quotas that are named; null restores the server's default. What already
    exceeds a smaller quota stays."""
    kept = {name: limit for name, limit in {**holder.quotas, **limits}.items() if limit is not None}
    record(f"{holder._meta.model_name}.quotas", holder, quotas={name: [holder.quotas.get(name), kept.get(name)] for name in limits})
    holder.quotas = kept
    holder.save(update_fields=["quotas"])
