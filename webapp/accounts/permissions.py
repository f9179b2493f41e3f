"""The one permission rule, used by pages, API and sockets alike.

An owned object is seen by its owner, by every member of its team and, if it is public, by
everyone who is logged in. It is changed by its owner and by members of its team whose role is
at least the model's `edit_role`; users without that role in any team cannot create one.
Objects of a feed are visible only to users who also see the feed. Superusers see and change
everything; inactive users nothing.
"""

from __future__ import annotations

from typing import ClassVar, Self, TypeVar

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import ExpressionWrapper, Q, Value

from engine.model.messages import Message
from webapp.accounts.models import Membership, Role, User

OwnedModel = TypeVar("OwnedModel", bound="Owned", covariant=True)
AnyUser = User | AnonymousUser


class OwnedQuerySet(models.QuerySet[OwnedModel]):
    """A queryset that applies the rule."""

    def visible_to(self, user: AnyUser) -> Self:
        """The objects that `user` may see."""
        return self.filter(visible(self.model, user))

    def editable_by(self, user: AnyUser) -> Self:
        """The objects that `user` may change."""
        visible = self.visible_to(user)
        if user.is_anonymous or user.is_superuser:
            return visible
        return visible.filter(changed_by(user, self.model.edit_role))

    def with_editable(self, user: AnyUser) -> Self:
        """The same objects, each with `editable`: whether `user`, who sees it, may change it (true,
        false or null for false)."""
        if user.is_anonymous:
            return self.annotate(editable=Value(False))
        if user.is_superuser:
            return self.annotate(editable=Value(True))
        return self.annotate(editable=ExpressionWrapper(changed_by(user, self.model.edit_role), output_field=models.BooleanField()))


class Owned(models.Model):
    """Someone's object, perhaps shared with a team or with everyone."""

    edit_role: ClassVar[Role] = Role.ANALYST
    inside: ClassVar[tuple[str, ...]] = ()
    """Foreign keys to owned objects that must be visible too."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    team = models.ForeignKey("accounts.Team", models.SET_NULL, null=True, blank=True, related_name="+")
    public = models.BooleanField(default=False, help_text="Everyone who is logged in may read it.")

    class Meta:
        abstract = True


def visible(model: type[Owned], user: AnyUser, *, prefix: str = "") -> Q:
    """Which objects of `model`, reached through `prefix`, `user` may see."""
    if not user.is_active or user.is_anonymous:
        return Q(pk__in=[])
    if user.is_superuser:
        return Q()
    rule = seen_by(user, prefix=prefix)
    for container in model.inside:
        rule &= seen_by(user, prefix=f"{prefix}{container}__")
    return rule


def seen_by(user: User, *, prefix: str = "") -> Q:
    """The rule of seeing, for objects reached through `prefix`."""
    teams = Membership.objects.filter(user=user).values("team")
    return Q(**{f"{prefix}owner": user}) | Q(**{f"{prefix}public": True}) | Q(**{f"{prefix}team__in": teams})


def changed_by(user: User, role: Role, *, prefix: str = "") -> Q:
    """The rule of changing for a model that requires `role`, for objects reached through
    `prefix`."""
    teams = Membership.objects.filter(user=user, role__in=role.and_above).values("team")
    return Q(**{f"{prefix}owner": user}) | Q(**{f"{prefix}team__in": teams})


def users_who_may_change(thing: Owned) -> models.QuerySet[User]:
    """The inverse of the rule: the active users who may change `thing`, without superusers, who may
    change everything."""
    may = Q(pk=thing.owner_id) | Q(pk__in=Membership.objects.filter(team=thing.team_id, role__in=thing.edit_role.and_above).values("user"))
    for name in thing.inside:
        container: Owned = getattr(thing, name)
        if not container.public:
            may &= Q(pk=container.owner_id) | Q(pk__in=Membership.objects.filter(team=container.team_id).values("user"))
    return User.objects.filter(may, is_active=True).order_by("username")


def check_may_make(user: User, role: Role) -> None:
    """Raises PermissionDenied unless `user` has at least `role` in some team: users who may not
    create something for a team may not create it for themselves either."""
    if not user.is_superuser and not Membership.objects.filter(user=user, role__in=role.and_above).exists():
        raise PermissionDenied(Message("You need to be at least {role} in a team to create this.", role=role.in_messages))


def check_team(user: User, team_id: int | None, role: Role) -> None:
    """Raises PermissionDenied unless `user` may put an object that requires `role` into the
    team."""
    if team_id is None or user.is_superuser:
        return
    if not Membership.objects.filter(user=user, team=team_id, role__in=role.and_above).exists():
        raise PermissionDenied(Message("You need to be at least {role} in that team.", role=role.in_messages))
