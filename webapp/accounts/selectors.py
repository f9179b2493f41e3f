"""Reads of users, teams and tokens."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from webapp.accounts.models import ApiToken, Membership, Role, User


def me(user: User) -> dict[str, Any]:
    """What a page knows about the person before it."""
    memberships = Membership.objects.filter(user=user).select_related("team").order_by("team__name")
    return {
        "id": user.pk,
        "name": user.username,
        "email": user.email,
        "time_zone": user.time_zone,
        "superuser": user.is_superuser,
        "teams": [{"id": m.team_id, "name": m.team.name, "role": m.role} for m in memberships],
    }


def token_list(*, user: User) -> QuerySet[ApiToken]:
    """The user's own tokens, newest first."""
    return ApiToken.objects.filter(user=user)


def operates(user: User) -> bool:
    """Whether the user is an operator of any team: they may start and stop what all share."""
    return user.is_superuser or Membership.objects.filter(user=user, role__in=Role.OPERATOR.and_above).exists()
