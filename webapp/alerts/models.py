"""Alerts, and the channels that carry them out of the house."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import Role
from webapp.accounts.permissions import Owned, OwnedQuerySet
from webapp.config.secrets_at_rest import SealedCharField, SealedURLField
from webapp.feeds.models import NO_CONTROLS, Feed
from webapp.queries.models import Query, Severity


class AlertState(models.TextChoices):
    NEW = "new", "New"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    RESOLVED = "resolved", "Resolved"


class Resolution(models.TextChoices):
    PERSON = "person", "By a person"
    ENDED = "ended", "The interval ended"
    WITHDRAWN = "withdrawn", "The answer was withdrawn"
    REMOVED = "removed", "The query was removed"
    CHANGED = "changed", "The query was edited or switched off"


class Alert(models.Model):
    """One open interval, or one instant, that a person must be told about.

    `detection_key` is the natural key of the detection that opened it, `closing_key` of the one that ended it.
    """

    query = models.ForeignKey(Query, models.CASCADE, related_name="alerts")
    query_version = models.PositiveIntegerField(default=1)
    feed = models.ForeignKey(Feed, models.CASCADE, related_name="alerts")
    detection_key = models.BinaryField(max_length=16)
    kind = models.CharField(max_length=100)
    entities = ArrayField(models.TextField(), default=list)
    value = models.TextField(null=True)
    start = models.BigIntegerField()
    end = models.BigIntegerField(null=True)
    severity = models.CharField(max_length=10, choices=Severity.choices)
    state = models.CharField(max_length=12, choices=AlertState.choices, default=AlertState.NEW)
    opened_at = models.DateTimeField(default=timezone.now)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    resolution = models.CharField(max_length=10, choices=Resolution.choices, blank=True)
    closing_key = models.BinaryField(max_length=16, null=True)
    planned_at = models.DateTimeField(null=True, help_text="When its deliveries were planned.")

    class Meta:
        ordering = ("-id",)
        constraints = [models.UniqueConstraint(fields=["feed", "detection_key"], name="one_alert_for_a_detection")]
        indexes = [
            models.Index(fields=["query", "-id"], name="alerts_of_query"),
            models.Index(fields=["query", "entities"], condition=~Q(state="resolved"), name="unresolved_alerts"),
            models.Index(fields=["id"], condition=Q(planned_at=None), name="alerts_to_plan"),
        ]

    def __str__(self) -> str:
        return f"{self.query}: {self.kind} {', '.join(self.entities)}"


class AlertComment(models.Model):
    """What a person said about an alert."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="comments")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    text = models.TextField(max_length=4000)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("id",)


class Channel(Owned):
    """A webhook (Standard Webhooks). It gets the alerts of all queries that its owner sees, or of those in `queries` alone.

    At most `per_minute` messages leave for it in a minute; alerts beyond that wait and go together in one message.
    """

    edit_role = Role.OPERATOR

    name = models.CharField(max_length=100, validators=[NO_CONTROLS])
    url = SealedURLField(max_length=500)
    secret = SealedCharField(max_length=100, editable=False)
    old_secret = SealedCharField(max_length=100, blank=True, editable=False)
    old_secret_until = models.DateTimeField(null=True, editable=False)
    enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=200, blank=True)
    min_severity = models.CharField(max_length=10, choices=Severity.choices, default=Severity.INFO)
    per_minute = models.PositiveIntegerField(default=30)
    all_queries = models.BooleanField(default=True, help_text="Also those registered later; else the chosen ones only.")
    queries = models.ManyToManyField(Query, blank=True, related_name="channels")
    failures = models.PositiveIntegerField(default=0, editable=False, help_text="Failed attempts since the last success.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Delivery(models.Model):
    """One message to one channel: sent, then marked as sent, so at least once; `webhook_id` stays the same over all attempts."""

    channel = models.ForeignKey(Channel, models.CASCADE, related_name="deliveries")
    webhook_id = models.UUIDField(default=uuid.uuid4, unique=True)
    test = models.BooleanField(default=False)
    body = models.TextField(help_text="The message, the same at every attempt.")
    created_at = models.DateTimeField(default=timezone.now)
    attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField(default=timezone.now)
    claimed_until = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True, help_text="When it was given up.")
    status_code = models.PositiveIntegerField(null=True)
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "deliveries"
        indexes = [models.Index(fields=["next_at"], condition=Q(sent_at=None, failed_at=None), name="deliveries_due")]


class Notification(models.Model):
    """That an alert is to reach a channel; `delivery` is the message it travels in."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="notifications")
    channel = models.ForeignKey(Channel, models.CASCADE, related_name="notifications")
    delivery = models.ForeignKey(Delivery, models.CASCADE, null=True, related_name="notifications")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["alert", "channel"], name="one_notification_for_a_channel")]
        indexes = [models.Index(fields=["channel", "id"], condition=Q(delivery=None), name="notifications_to_send")]
