"""Services that change teams: members and their roles, invitations, ownership. Callers
have checked the permissions.

Two rules always hold: a team with members keeps an admin, and every owned object keeps an owner.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from allauth.account.adapter import get_adapter
from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from engine.model.faults import Fault, Refused
from engine.model.messages import Message
from webapp.accounts.models import Invitation, Membership, Role, Team, User
from webapp.accounts.permissions import Owned
from webapp.accounts.selectors import invitation_list
from webapp.audit.services import record
from webapp.config.algorithms import digest_of, digests_of
from webapp.config.room import room_check

INVITATION_DAYS = 7
INVITATIONS = 500
"""Of one team, that are open."""


@dataclass(frozen=True)
class NewInvitation:
    """A new invitation; `text` is the only copy of its secret."""

    invitation: Invitation
    text: str


@transaction.atomic
def team_create(*, name: str) -> Team:
    """A team without members."""
    team = Team.objects.create(name=name)
    record("team.create", team)
    return team


@transaction.atomic
def team_remove(*, team: Team) -> None:
    """Removes the team; its objects stay with their owners."""
    record("team.remove", team)
    team.delete()


@transaction.atomic
def member_set_role(*, member: Membership, role: Role) -> Membership:
    """Gives a member another role. Raises Refused when the team would be left without an admin."""
    before = member.role
    if role != Role.ADMIN:
        _check_other_admin(member)
    member.role = role
    member.save(update_fields=["role"])
    record("membership.change", member.team, user=member.user.username, role=[before, role])
    return member


@transaction.atomic
def member_remove(*, member: Membership, new_owner: User | None) -> None:
    """Removes a member from the team. Their objects in it go to `new_owner`, or stay theirs. Raises
    Refused for the only admin."""
    _check_other_admin(member)
    if new_owner is not None:
        ownership_transfer(owner=member.user, new_owner=new_owner, team=member.team)
    record("membership.remove", member.team, user=member.user.username)
    member.delete()


def _check_other_admin(member: Membership) -> None:
    others = Membership.objects.select_for_update().filter(team=member.team).exclude(pk=member.pk)
    if member.role == Role.ADMIN and others and not any(other.role == Role.ADMIN for other in others):
        raise Refused([Fault("/role", Message("This is the team's only admin. Make another member admin first."))])


@transaction.atomic
def ownership_transfer(*, owner: User, new_owner: User, team: Team | None) -> dict[str, int]:
    """Transfers `owner`'s objects in the team (null: all objects) to `new_owner`. Returns how many
    of each kind.

    Raises Refused when the new_owner is no active member of the team.
    """
    if not new_owner.is_active or (team is not None and not Membership.objects.filter(user=new_owner, team=team).exists()):
        raise Refused([Fault("/to", Message("Objects can only be transferred to an active member of the same team."))])
    counts: dict[str, int] = {}
    for model, theirs in _held_things(owner=owner, team=team).items():
        for thing in theirs:
            # One by one: open sockets listen for the change of an owner.
            thing.owner = new_owner
            thing.save(update_fields=["owner"])
            counts[model._meta.model_name or ""] = counts.get(model._meta.model_name or "", 0) + 1
    record("ownership.transfer", owner, to=new_owner.username, within=team.name if team is not None else None, counts=counts)
    return counts


def _held_things(*, owner: User, team: Team | None) -> dict[type[Owned], Any]:
    """By kind, what `owner` owns (in the team), to be changed in this order: feeds first, which are
    held with the feeds of the other things (see `config.room` for the order of locks)."""
    of_owner = {"owner": owner, **({"team": team} if team is not None else {})}
    kinds = [model for model in apps.get_models() if issubclass(model, Owned)]
    things: dict[type[Owned], Any] = {model: model._default_manager.filter(**of_owner).order_by("pk") for model in kinds}
    holders: dict[type[Owned], Q] = {}
    for model in kinds:
        for name in model.inside:
            holder: Any = model._meta.get_field(name).related_model
            holders[holder] = holders.get(holder, Q(**of_owner)) | Q(pk__in=things[model].order_by().values(name))
    for holder, wanted in holders.items():
        list(holder._base_manager.select_for_update(of=("self",), no_key=True).filter(wanted).order_by("pk").values_list("pk"))
    return {model: things[model] for model in sorted(kinds, key=lambda kind: kind not in holders)}


@transaction.atomic
def user_set_active(*, user: User, active: bool) -> None:
    """Switches an account on or off; while it is off, its sessions and tokens are invalid."""
    user.is_active = active
    user.save(update_fields=["is_active"])
    record("user.change", user, active=active)


@transaction.atomic
def user_set_administrator(*, user: User, administrator: bool) -> None:
    """Makes someone an administrator of the server, or no longer one. Raises
    Refused for the only one."""
    if not administrator and not User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk).exists():
        raise Refused([Fault("/administrator", Message("This is the server's only administrator. Make another user administrator first."))])
    user.is_superuser = user.is_staff = administrator
    user.save(update_fields=["is_superuser", "is_staff"])
    record("user.change", user, administrator=administrator)


# -- invitations -----------------------------------------------------------------------------------


@transaction.atomic
def invitation_create(*, team: Team, email: str, role: Role, by: User) -> NewInvitation:
    """An invitation of 256 random bits; an older one of the same address to the team ends. Raises
    Refused."""
    others = invitation_list(team=team).exclude(email=email.lower())
    full = Message("A team has at most {most} open invitations: revoke one first.", most=INVITATIONS)
    room_check(others, INVITATIONS, of=team, full=full)
    Invitation.objects.filter(team=team, email=email.lower()).delete()
    text = secrets.token_urlsafe(32)
    expires = timezone.now() + timedelta(days=INVITATION_DAYS)
    made = Invitation.objects.create(team=team, email=email.lower(), role=role, digest=digest_of(text), invited_by=by, expires_at=expires)
    record("invitation.create", team, email=made.email, role=role)
    return NewInvitation(made, text)


def invitation_send(*, new: NewInvitation, link: str) -> bool:
    """Sends the link to the address. False when this server sends no e-mail."""
    if not settings.EMAIL_GIVEN:
        return False
    invitation = new.invitation
    get_adapter().send_mail("account/email/invitation", invitation.email, {"invitation": invitation, "link": link, "days": INVITATION_DAYS})
    return True


@transaction.atomic
def invitation_revoke(*, invitation: Invitation) -> None:
    """Ends an invitation immediately."""
    record("invitation.remove", invitation.team, email=invitation.email)
    invitation.delete()


def invitation_find(text: str) -> Invitation | None:
    """The invitation with this secret; null if there is none or it has expired."""
    return _valid(digest__in=digests_of(text))


def invitation_get(pk: int) -> Invitation | None:
    """The same by its key, for a user who has opened it."""
    return _valid(pk=pk)


def _valid(**lookup: Any) -> Invitation | None:
    invitation = Invitation.objects.select_related("team", "invited_by").filter(expires_at__gt=timezone.now(), **lookup).first()
    return invitation if invitation is not None and _still_valid(invitation) else None


def _still_valid(invitation: Invitation) -> bool:
    """Whether the inviting user may still invite: invitations of an admin who has left are void."""
    by = invitation.invited_by
    return by.is_active and (by.is_superuser or Membership.objects.filter(user=by, team=invitation.team, role=Role.ADMIN).exists())


@transaction.atomic
def invitation_accept(*, invitation: Invitation, user: User) -> Membership:
    """Makes the user a member; an existing member's role is never lowered. The invitation is used
    up. Raises Refused when it was already."""
    if Invitation.objects.filter(pk=invitation.pk).delete()[0] == 0:
        raise Refused([Fault("", Message("This invitation has been used."))])
    member, new = Membership.objects.get_or_create(user=user, team=invitation.team, defaults={"role": invitation.role})
    if not new and invitation.role in Role(member.role).and_above:
        member.role = invitation.role
        member.save(update_fields=["role"])
    record("invitation.accept", invitation.team, actor=user, email=invitation.email, role=member.role)
    return member


@transaction.atomic
def invited_user_create(*, invitation: Invitation, username: str, password: str) -> User:
    """A new account, as a member of the team. The caller has checked name and password."""
    user = User.objects.create_user(username, email=invitation.email, password=password)
    record("user.create", user, actor=user)
    invitation_accept(invitation=invitation, user=user)
    return user
