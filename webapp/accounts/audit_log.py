"""Who may read what of the audit log."""

from __future__ import annotations

from django.db.models import QuerySet

from webapp.accounts.models import Membership, Role
from webapp.accounts.permissions import AnyUser
from webapp.audit.models import Entry


def entry_list(*, user: AnyUser) -> QuerySet[Entry]:
    """The entries that `user` may read, newest first: a superuser all, an admin of teams those
    about objects of these teams."""
    if user.is_anonymous or not user.is_active:
        return Entry.objects.none()
    if user.is_superuser:
        return Entry.objects.all()
    return Entry.objects.filter(team__in=Membership.objects.filter(user=user, role=Role.ADMIN).values("team"))


def reads_entries(*, user: AnyUser) -> bool:
    """Whether the audit log has a page for this user."""
    if user.is_anonymous or not user.is_active:
        return False
    return user.is_superuser or Membership.objects.filter(user=user, role=Role.ADMIN).exists()
