"""Alerts, and the channels that send them."""

from __future__ import annotations

import uuid
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, Q, Value, When
from django.utils import timezone
from django.utils.translation import gettext_noop

from webapp.accounts.models import Role
from webapp.accounts.permissions import Owned, OwnedQuerySet
from webapp.alerts.timing import Timed
from webapp.config.secrets_at_rest import EncryptedCharField
from webapp.feeds.models import NO_CONTROLS, Feed, Region
from webapp.queries.models import Query, Severity


class AlertState(models.TextChoices):
    NEW = "new", gettext_noop("New")
    SEEN = "seen", gettext_noop("Seen")
    ACKNOWLEDGED = "acknowledged", gettext_noop("Acknowledged")
    ASSIGNED = "assigned", gettext_noop("Assigned")
    REOPENED = "reopened", gettext_noop("Reopened")
    RESOLVED = "resolved", gettext_noop("Resolved")


OPEN_STATES = tuple(state for state in AlertState.values if state != AlertState.RESOLVED)
UNATTENDED_STATES = (AlertState.NEW, AlertState.SEEN, AlertState.REOPENED)


class Resolution(models.TextChoices):
    PERSON = "person", "By a person"
    ENDED = "ended", "The interval ended"
    WITHDRAWN = "withdrawn", "The answer was withdrawn"
    REMOVED = "removed", "The query was removed"
    CHANGED = "changed", "The query was edited or switched off"


class Mute(Owned):
    """Suppresses notifications for the alerts of a query, of the queries that name a region,
    of an entity or of a pair.

    It applies to queries that its owner may change. `window_until` None: for good. `rule`,
    `first_from` and `length` make the windows of one that repeats; `begun`: the open alerts have
    been muted for this window.
    """

    edit_role = Role.ANALYST
    inside = ("feed",)

    feed = models.ForeignKey(Feed, models.CASCADE, related_name="mutes")
    query = models.ForeignKey(Query, models.CASCADE, null=True, related_name="mutes")
    region = models.ForeignKey(Region, models.CASCADE, null=True, related_name="mutes")
    entities = ArrayField(models.TextField(), default=list)
    reason = models.CharField(max_length=500, validators=[NO_CONTROLS])
    window_from = models.DateTimeField()
    window_until = models.DateTimeField(null=True)
    begun = models.BooleanField(default=False)
    rule = models.CharField(max_length=300, blank=True)
    zone = models.CharField(max_length=60, default="UTC")
    first_from = models.DateTimeField(null=True)
    length = models.DurationField(null=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    ended_at = models.DateTimeField(null=True)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        indexes = [models.Index(fields=["feed"], condition=Q(ended_at=None), name="mutes_of_feed")]

    def __str__(self) -> str:
        return f"{self.of}: {self.reason}"

    @property
    def of(self) -> str:
        """A description of what is muted."""
        return str(self.query or self.region or " and ".join(self.entities))


class Alert(models.Model):
    """One open interval, or one instant, that a user must know about.

    `detection_key` is the natural key of the detection that opened it, `closing_key` of the one
    that ended it. `over_at`: when the end of the reported answer became known; `resolution` then
    gives the reason. It stays on the desk until someone acknowledges it: only both together resolve
    it. `start` and `end` are event time, `opened_at` and `over_at` the wall clock.

    `revision` counts decisions: a user who decides sends the revision they saw, and is shown who
    decided before.
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
    rank = models.GeneratedField(
        expression=Case(*(When(severity=name, then=Value(i)) for i, name in enumerate(Severity.values)), default=Value(0)),
        output_field=models.SmallIntegerField(),
        db_persist=True,
    )
    state = models.CharField(max_length=12, choices=AlertState.choices, default=AlertState.NEW)
    opened_at = models.DateTimeField(default=timezone.now)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    assignee = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    over_at = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    resolution = models.CharField(max_length=10, choices=Resolution.choices, blank=True)
    closing_key = models.BinaryField(max_length=16, null=True)
    mute = models.ForeignKey(Mute, models.SET_NULL, null=True, related_name="alerts", help_text="The mute that suppressed its messages.")
    revision = models.PositiveIntegerField(default=0)
    planned_at = models.DateTimeField(null=True, help_text="When its messages were planned.")

    class Meta:
        ordering = ("-id",)
        constraints = [models.UniqueConstraint(fields=["feed", "detection_key"], name="one_alert_for_a_detection")]
        indexes = [
            models.Index(fields=["query", "-id"], name="alerts_of_query"),
            models.Index(fields=["query", "entities"], condition=~Q(state="resolved"), name="unresolved_alerts"),
            models.Index(fields=["id"], condition=Q(planned_at=None), name="alerts_to_plan"),
            # One index for each order of the desk, and one for index-only counts.
            models.Index(fields=["id"], condition=~Q(state="resolved"), name="desk_by_opening"),
            models.Index(fields=["rank", "id"], condition=~Q(state="resolved"), name="desk_by_severity"),
            models.Index(fields=["start", "id"], condition=~Q(state="resolved"), name="desk_by_event_time"),
            models.Index(fields=["query", "state", "severity"], include=["mute"], condition=~Q(state="resolved"), name="desk_counts"),
        ]

    def __str__(self) -> str:
        return f"{self.query}: {self.kind} {', '.join(self.entities)}"


class Step(models.TextChoices):
    """What can happen to an alert: by a user, or (the second half) automatically."""

    SEEN = "seen", "Seen"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    ASSIGNED = "assigned", "Assigned"
    RESOLVED = "resolved", "Resolved"
    REOPENED = "reopened", "Reopened"
    COMMENTED = "commented", "Commented"
    ENDED = "ended", "Ended by itself"
    WITHDRAWN = "withdrawn", "Withdrawn"
    CHANGED = "changed", "Its query was edited or switched off"
    REMOVED = "removed", "Its query was removed"
    RESUMED = "resumed", "Holds again"


class AlertStep(models.Model):
    """One step in an alert's history: what happened, when, by whom (null: automatically), with
    which comment."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="steps")
    action = models.CharField(max_length=12, choices=Step.choices, default=Step.COMMENTED)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    assignee = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    text = models.TextField(max_length=4000, blank=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("id",)


class Verdict(models.TextChoices):
    RIGHT = "right", "Right"
    FALSE = "false", "False alarm"
    NOT_USEFUL = "not_useful", "Right, but not useful"


class Feedback(models.Model):
    """A user's feedback on an answer that raised an alert: a label for tuning the query."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="feedback")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    verdict = models.CharField(max_length=10, choices=Verdict.choices)
    reason = models.CharField(max_length=500, blank=True, validators=[NO_CONTROLS])
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("id",)
        verbose_name_plural = "feedback"
        constraints = [models.UniqueConstraint(fields=["alert", "author"], name="one_verdict_of_a_person")]


class SavedView(Owned):
    """A named view of the desk: the parameters of its address. Users who
    may see alerts may keep one."""

    edit_role = Role.VIEWER

    name = models.CharField(max_length=100, validators=[NO_CONTROLS])
    parameters = models.CharField(
        max_length=2000, blank=True, validators=[NO_CONTROLS], help_text="The query string of the address: severity=high&assignee=me"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ("name", "id")

    def __str__(self) -> str:
        return self.name


class ChannelKind(models.TextChoices):
    WEBHOOK = "webhook", "Webhook"
    MAIL = "mail", "E-mail"
    MQTT = "mqtt", "MQTT topic"
    APPRISE = "apprise", "Chat, pager or SMS (Apprise)"
    PUSH = "push", "A browser (web push)"
    KAFKA = "kafka", "Kafka topic"


class Channel(Timed, Owned):
    """A channel: a webhook (Standard Webhooks) to `url`, a topic of MQTT or Kafka or a service of
    Apprise at `url`, e-mail to `recipient`, or one of its owner's browsers, whose subscription is
    the address `url` of its push service and `browser_keys`; `browser` identifies it.

    It gets the alerts of all queries that its owner sees, or only of those in `queries`. At most
    `per_minute` messages leave for it in a minute; further alerts wait and are sent together in one
    message.
    """

    edit_role = Role.OPERATOR

    name = models.CharField(max_length=100, validators=[NO_CONTROLS])
    kind = models.CharField(max_length=10, choices=ChannelKind.choices, default=ChannelKind.WEBHOOK)
    url = EncryptedCharField(max_length=1000, blank=True)
    browser_keys = EncryptedCharField(max_length=200, blank=True)
    browser = models.CharField(max_length=64, null=True, unique=True, editable=False, help_text="SHA-256 of the subscription's address.")
    recipient = models.EmailField(blank=True)
    secret = EncryptedCharField(max_length=100, editable=False)
    old_secret = EncryptedCharField(max_length=100, blank=True, editable=False)
    old_secret_until = models.DateTimeField(null=True, editable=False)
    enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=200, blank=True)
    min_severity = models.CharField(max_length=10, choices=Severity.choices, default=Severity.INFO)
    per_minute = models.PositiveIntegerField(default=30)
    all_queries = models.BooleanField(default=True, help_text="Also those registered later; else the chosen ones only.")
    queries = models.ManyToManyField(Query, blank=True, related_name="channels")
    failures = models.PositiveIntegerField(default=0, editable=False, help_text="Failed attempts since the last success.")
    not_before = models.DateTimeField(null=True, editable=False, help_text="Until then nothing is sent: the receiver asked for it, or fails.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def shown_url(self) -> str:
        """The address without the password in it; of a service of Apprise, which may have its
        keys anywhere in it, only its name; of a browser its push service, because anyone who
        knows the rest can send to it.
        """
        address = str(self.url)
        if self.kind == ChannelKind.PUSH:
            return f"https://{urlsplit(address).netloc}/***"
        if self.kind == ChannelKind.APPRISE:
            return f"{address.partition('://')[0]}://***"
        login, found, place = urlsplit(address).netloc.rpartition("@") if self.kind in (ChannelKind.MQTT, ChannelKind.KAFKA) else ("", "", "")
        return address.replace(f"{login}@{place}", f"{login.partition(':')[0]}:***@{place}", 1) if found and ":" in login else address


class Delivery(models.Model):
    """One message to one channel: sent, then marked as sent, so at least once; `webhook_id` stays
    the same over all attempts."""

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


class Shift(Owned):
    """Who is on call when, by an imported calendar, known until `known_until`, and by turns entered
    by hand. `unknown`: names in the calendar that belong to no user.

    `warned`: problems about which its owner got a mail.
    """

    edit_role = Role.OPERATOR

    name = models.CharField(max_length=100, validators=[NO_CONTROLS])
    zone = models.CharField(max_length=60, default="UTC", help_text="Of times in the calendar that have none.")
    unknown = ArrayField(models.TextField(), default=list, editable=False)
    known_until = models.DateTimeField(default=timezone.now, editable=False)
    warned = models.CharField(max_length=10, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ("name", "id")

    def __str__(self) -> str:
        return self.name


class Turn(models.Model):
    """A span [begins_at, ends_at) in which a person is on call. `by_hand`: another calendar does
    not replace it."""

    shift = models.ForeignKey(Shift, models.CASCADE, related_name="turns")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    by_hand = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ("begins_at", "id")
        indexes = [models.Index(fields=["shift", "begins_at", "ends_at"], name="turns_of_shift")]


class RoutingRule(Timed, Owned):
    """Which alerts go to which channels, in addition to those that a channel subscribes to.

    Empty conditions always hold. An alert matches if it is of `feed`, of one of `queries`, of a
    query with one of `tags` or that names one of `regions`, has at least `min_severity`, and was
    opened at one of `days` (0: Monday) between `from_time` and `until_time` of `zone`. It goes to
    `channels`, to those of `teams`, and to the personal channels of `people` and of users on call
    in `shifts`; with `after_minutes` only if nobody has acknowledged it by then.
    """

    edit_role = Role.OPERATOR

    name = models.CharField(max_length=100, validators=[NO_CONTROLS])
    enabled = models.BooleanField(default=True)
    feed = models.ForeignKey(Feed, models.CASCADE, null=True, blank=True, related_name="routing_rules")
    queries = models.ManyToManyField(Query, blank=True, related_name="routing_rules")
    tags = ArrayField(models.CharField(max_length=50, validators=[NO_CONTROLS]), default=list, blank=True)
    regions = models.ManyToManyField(Region, blank=True, related_name="routing_rules")
    min_severity = models.CharField(max_length=10, choices=Severity.choices, default=Severity.INFO)
    days = ArrayField(models.PositiveSmallIntegerField(), default=list, blank=True)
    from_time = models.TimeField(null=True, blank=True)
    until_time = models.TimeField(null=True, blank=True)
    after_minutes = models.PositiveIntegerField(default=0)
    channels = models.ManyToManyField(Channel, blank=True, related_name="routing_rules")
    teams = models.ManyToManyField("accounts.Team", blank=True, related_name="+")
    people = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="+")
    shifts = models.ManyToManyField(Shift, blank=True, related_name="routing_rules")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.name


class Notification(models.Model):
    """An alert is to be sent to a channel, by which rule (none: the channel subscribes to it) and
    when; `delivery` is its message.

    `gathered`: it waits for a digest, and is sent with all that are due by then. `group`: the group
    for which messages on the channel are limited.
    """

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="notifications")
    channel = models.ForeignKey(Channel, models.CASCADE, related_name="notifications")
    rule = models.ForeignKey(RoutingRule, models.SET_NULL, null=True, related_name="notifications")
    after_minutes = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(default=timezone.now)
    gathered = models.BooleanField(default=False)
    group = models.TextField(blank=True, default="")
    delivery = models.ForeignKey(Delivery, models.CASCADE, null=True, related_name="notifications")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["alert", "channel", "after_minutes"], name="one_notification_for_a_channel")]
        indexes = [
            models.Index(fields=["channel", "id"], condition=Q(delivery=None), name="notifications_to_send"),
            models.Index(fields=["channel", "group", "due_at"], condition=~Q(group=""), name="notifications_of_group"),
        ]
