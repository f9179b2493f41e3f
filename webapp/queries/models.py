"""Continuous queries and the versions of them that jobs have run."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_noop

from webapp.accounts.models import Role
from webapp.accounts.permissions import Owned, OwnedQuerySet
from webapp.config.documents import DocumentField
from webapp.feeds.models import NO_CONTROLS, Feed, Region


class Severity(models.TextChoices):
    INFO = "info", gettext_noop("Info")
    LOW = "low", gettext_noop("Low")
    HIGH = "high", gettext_noop("High")
    CRITICAL = "critical", gettext_noop("Critical")


class Calls(models.TextChoices):
    """For which of a query's alerts users are notified, without muted ones; all of them are on the
    desk."""

    EACH = "each", "Each"
    ONCE = "once", "One while it lasts"


class Query(Owned):
    """A registered query as its owner wrote it; jobs run its versions.

    `alert_kinds` are the kinds of answers that open an alert; empty: none does.
    `calls_per_hour`: the most messages about its alerts to a channel within an hour; further alerts
    are sent together in the next one.
    """

    edit_role = Role.ANALYST
    inside = ("feed",)

    feed = models.ForeignKey(Feed, models.PROTECT, related_name="queries")
    name = models.CharField(max_length=100, validators=[NO_CONTROLS])
    description = models.TextField(blank=True, max_length=2000)
    folder = models.CharField(
        max_length=200, blank=True, default="", validators=[NO_CONTROLS], help_text="Where lists show it, such as Harbour/Night."
    )
    tags = ArrayField(models.CharField(max_length=50, validators=[NO_CONTROLS]), default=list, blank=True)
    family = models.CharField(max_length=20)
    specification = DocumentField(help_text="As written; references to stored regions are kept.")
    version = models.PositiveIntegerField(default=1, editable=False)
    enabled = models.BooleanField(default=True)
    severity = models.CharField(max_length=10, choices=Severity.choices, default=Severity.LOW)
    alert_kinds = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    calls = models.CharField(max_length=10, choices=Calls.choices, default=Calls.EACH)
    calls_per_hour = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(600)])
    regions = models.ManyToManyField(Region, related_name="queries", blank=True, help_text="Stored regions that it names.")
    derives_from = models.ManyToManyField(
        "self", symmetrical=False, related_name="derived_by", blank=True, help_text="Queries whose answers are events of it."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ("name", "id")
        verbose_name_plural = "queries"
        constraints = [models.UniqueConstraint(fields=["feed", "name"], condition=Q(deleted_at=None), name="query_name_in_feed")]

    def __str__(self) -> str:
        return self.name

    @property
    def stopped(self) -> QueryStop | None:
        """Why the job runs without the current version; null if it runs it."""
        return next((stop for stop in self.stops.all() if self.enabled and stop.version == self.version), None)


class QueryVersion(models.Model):
    """One version of a query: a job runs it while the feed's query version v is in
    [from_feed_version, to_feed_version).

    A version that is disabled and enabled again continues: the span is then the last one.

    `document` is the specification as written, `specification` the same with stored regions put in
    their place: it needs no region table to be checked and compiled. `left_at` is the event time at
    which the job left it, where its open answers end (decision 20); null while it runs. `left_seq`
    is the feed's outbox number then.
    """

    query = models.ForeignKey(Query, models.CASCADE, related_name="versions")
    version = models.PositiveIntegerField()
    document = DocumentField()
    specification = DocumentField()
    from_feed_version = models.BigIntegerField()
    to_feed_version = models.BigIntegerField(null=True)
    left_at = models.BigIntegerField(null=True)
    left_seq = models.BigIntegerField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ("query", "version")
        constraints = [
            models.UniqueConstraint(fields=["query", "version"], name="version_of_query"),
            models.UniqueConstraint(fields=["query"], condition=Q(to_feed_version=None), name="one_current_version"),
            models.CheckConstraint(condition=Q(to_feed_version=None) | Q(to_feed_version__gt=F("from_feed_version")), name="version_span"),
        ]

    def __str__(self) -> str:
        return f"{self.query} v{self.version}"


class QueryStop(models.Model):
    """A version that the job could not continue to evaluate: it is left out for good; the
    next version starts again.

    Written in the transaction of the batch that failed, and in a separate table: the batch then
    does not wait for users who edit the query.
    """

    query = models.ForeignKey(Query, models.CASCADE, related_name="stops")
    version = models.PositiveIntegerField()
    reason = models.TextField()
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("query", "version")
        constraints = [models.UniqueConstraint(fields=["query", "version"], name="stop_of_version")]

    def __str__(self) -> str:
        return f"{self.query} v{self.version}: {self.reason}"
