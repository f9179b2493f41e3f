"""Reads of users, teams and tokens."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from webapp.accounts.models import ApiToken, Invitation, Membership, Role, Team, User


def me(user: User) -> dict[str, Any]:
    """A page's data about its user."""
    memberships = Membership.objects.filter(user=user).select_related("team").order_by("team__name")
    return {
        "id": user.pk,
        "name": user.username,
        "email": user.email,
        "time_zone": user.time_zone,
        "units": user.units,
        "language": user.language,
        "superuser": user.is_superuser,
        "teams": [{"id": m.team_id, "name": m.team.name, "role": m.role} for m in memberships],
    }


def token_list(*, user: User) -> QuerySet[ApiToken]:
    """The user's own tokens, newest first."""
    return ApiToken.objects.filter(user=user)


def manages(user: User, team: Team) -> bool:
    """Whether the user may change the team's members: its admins and the server's
    administrators."""
    return user.is_superuser or Membership.objects.filter(user=user, team=team, role=Role.ADMIN).exists()


def team_list(*, user: User) -> QuerySet[Team]:
    """The teams that the user sees: their own; an administrator all."""
    return Team.objects.all() if user.is_superuser else Team.objects.filter(memberships__user=user)


def member_list(*, team: Team) -> QuerySet[Membership]:
    """The members of a team by name."""
    return team.memberships.select_related("user").order_by("user__username")


def invitation_list(*, team: Team) -> QuerySet[Invitation]:
    """Invitations that are still open."""
    return team.invitations.select_related("invited_by").filter(expires_at__gt=timezone.now())


def people_list() -> QuerySet[User]:
    """Everybody with an account, by name."""
    return User.objects.prefetch_related("memberships__team").order_by("username")
