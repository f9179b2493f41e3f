"""Users, teams, roles and tokens."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from engine.model.messages import Message

ROLE_NAMES = gettext_noop("Viewer"), gettext_noop("Analyst"), gettext_noop("Operator"), gettext_noop("Admin")
"""For translators: the part before the colon of a role's description."""


class Role(models.TextChoices):
    """What a member may do with the team's objects; each role includes the ones before it."""

    VIEWER = "viewer", "Viewer: sees everything of the team"
    ANALYST = "analyst", "Analyst: also queries, regions and alerts"
    OPERATOR = "operator", "Operator: also feeds, jobs and channels"
    ADMIN = "admin", "Admin: also the team's members"

    @property
    def shown(self) -> str:
        """Its name in the reader's language."""
        return gettext(self.label.partition(":")[0])

    @property
    def in_messages(self) -> Message:
        """Its name as a part of a message, which is translated later."""
        return Message.of(self.label.partition(":")[0], {})

    @property
    def and_above(self) -> list[Role]:
        """This role and the higher ones."""
        roles = list(Role)
        return roles[roles.index(self) :]


class Scope(models.TextChoices):
    """The purposes of a token."""

    READ = "read", "Read"
    WRITE = "write", "Change things"
    INGEST = "ingest", "Send events"


class Units(models.TextChoices):
    METRIC = "metric", "Metres, kilometres an hour"
    NAUTICAL = "nautical", "Nautical miles, knots"
    IMPERIAL = "imperial", "Feet, miles an hour"


class User(AbstractUser):
    """A person or a program that logs in."""

    language = models.CharField(
        max_length=10, choices=settings.LANGUAGES, blank=True, default="", help_text="Of pages and mails; empty: as the browser asks for."
    )
    browser_language = models.CharField(
        max_length=10, blank=True, default="", editable=False, help_text="In which the user last opened a page: of messages, without a choice."
    )
    time_zone = models.CharField(max_length=64, default="UTC", help_text="Name of the zone that times are shown in (IANA).")
    units = models.CharField(max_length=10, choices=Units.choices, default=Units.METRIC, help_text="Units that distances and speeds are shown in.")
    quotas = models.JSONField(default=dict, blank=True, help_text="Those that differ from the server's, by name.")

    @property
    def language_of_messages(self) -> str:
        """What was chosen, else what the browser asked for; empty: neither is known."""
        return self.language or self.browser_language


class Team(models.Model):
    """Users who share feeds, queries and channels."""

    name = models.CharField(max_length=100, unique=True)
    members: models.ManyToManyField[User, Membership] = models.ManyToManyField(User, through="Membership", related_name="teams")
    quotas = models.JSONField(default=dict, blank=True, help_text="Those that differ from the server's, by name.")

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A user's role in a team."""

    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    team = models.ForeignKey(Team, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "team"], name="one_role_in_a_team")]

    def __str__(self) -> str:
        return f"{self.user} ({self.role}) in {self.team}"


class Invitation(models.Model):
    """An offer to join a team, valid once and for a limited time. A user who has the link may take
    it; only its SHA-256 is kept."""

    team = models.ForeignKey(Team, models.CASCADE, related_name="invitations")
    email = models.EmailField(help_text="To whom the link was given.")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    invited_by = models.ForeignKey(User, models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.email} ({self.role}) to {self.team}"

    @property
    def shown_role(self) -> str:
        """The role of a member with it, in the reader's language."""
        return Role(self.role).shown


class ApiToken(models.Model):
    """A program's key: shown once when it is created, stored as its SHA-256. Users recognise it by
    `prefix`."""

    user = models.ForeignKey(User, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    feed = models.ForeignKey("feeds.Feed", models.CASCADE, null=True, blank=True, related_name="+", help_text="The only one it may send to.")
    scopes = ArrayField(models.CharField(max_length=10, choices=Scope.choices))
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}...)"
