"""Feeds, their regions, and the records of ingest."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext_lazy

from engine.model.feed import Crs, TimeUnit
from engine.model.feed import Feed as EngineFeed
from engine.model.messages import Message, untranslated
from webapp.accounts.models import Role
from webapp.accounts.permissions import AnyUser, Owned, OwnedQuerySet
from webapp.config.documents import DocumentField
from webapp.config.secrets_at_rest import EncryptedCharField

NAME = RegexValidator(r"^[a-z][a-z0-9_-]{0,62}\Z", gettext_lazy("Lower-case letters, digits, - and _; begins with a letter; at most 63 characters."))
ENGINE_FIELDS = ("name", "crs", "time", "tick", "lateness", "dedupe", "columns")
_CONTROLS = r"\x00-\x1f\x7f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""With the marks that change the direction of writing: a name with one is shown as another name."""
NO_CONTROLS = RegexValidator(
    rf"^[^{_CONTROLS}]+\Z", gettext_lazy("No control characters, nor invisible marks that change the direction of writing (such as U+202E).")
)
TAG_FORM = re.compile(rf"^[^{_CONTROLS},]+\Z")
"""Forms and files separate tags by commas."""
TAG = RegexValidator(TAG_FORM, gettext_lazy("A tag has no commas, no control characters and no marks that change the direction of writing."))
TAG_LENGTH = 50
MOST_TAGS = 50
SILENT = timedelta(seconds=20)
"""An enabled connector whose process has not reported for this long has no process."""


class Feed(Owned):
    """A named stream with one schema and one clock (specification, section 1)."""

    edit_role = Role.OPERATOR

    name = models.CharField(max_length=63, unique=True, validators=[NAME])
    title = models.CharField(max_length=100, validators=[NO_CONTROLS])
    crs = models.CharField(max_length=10, choices=[(c.value, c.value) for c in Crs])
    time = models.CharField(max_length=5, choices=[(u.value, u.value) for u in TimeUnit], default="ms")
    tick = models.BigIntegerField(default=1, validators=[MinValueValidator(1)])
    lateness = models.BigIntegerField(default=0, validators=[MinValueValidator(0)], help_text="In the unit of t.")
    dedupe = models.BooleanField(default=True)
    ahead = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="How far a row may be ahead of the clock, in the unit of t; null: as far as it likes (decision 17).",
    )
    columns = DocumentField(default=dict, blank=True, help_text="Attribute name to string, int, float or bool.")
    wall_clock = models.BooleanField(default=False, help_text="Event times are the wall clock's: silence moves the watermark too.")
    plan_image = models.FileField(upload_to="plans/", blank=True, help_text="The plan under a planar feed: PNG, JPEG or WebP.")
    plan_bounds = ArrayField(models.FloatField(), size=4, null=True, blank=True, help_text="x0, y0, x1, y1 of the image in the plane.")
    view = DocumentField(default=dict, blank=True, help_text='Where the map opens: {"center": [x, y], "zoom": z}.')
    query_version = models.BigIntegerField(default=0, editable=False)
    retention_hours = models.PositiveIntegerField(default=72, validators=[MinValueValidator(1), MaxValueValidator(24 * 3660)])
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    def engine_feed(self) -> EngineFeed:
        """The feed as the engine knows it."""
        return EngineFeed.from_json({name: getattr(self, name) for name in ENGINE_FIELDS})


class Region(Owned):
    """A stored region of one feed; specifications name it by `{"region": name}`."""

    edit_role = Role.ANALYST
    inside = ("feed",)

    feed = models.ForeignKey(Feed, models.CASCADE, related_name="regions")
    name = models.CharField(max_length=100, validators=[NO_CONTROLS])
    geometry = DocumentField(help_text="GeoJSON Polygon or MultiPolygon, or a circle.")
    bbox = ArrayField(models.FloatField(), size=4, editable=False, help_text="Least x, least y, greatest x, greatest y.")
    vertices = models.PositiveIntegerField(default=0, editable=False, help_text="How many its geometry has; a circle has one.")
    tags = ArrayField(models.CharField(max_length=TAG_LENGTH), default=list, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ("feed", "name")
        constraints = [models.UniqueConstraint(fields=["feed", "name"], name="region_name_in_feed")]

    def __str__(self) -> str:
        return f"{self.feed.name}/{self.name}"


class UploadState(models.TextChoices):
    """The state of an uploaded file."""

    UPLOADING = "uploading"
    READY = "ready"
    READING = "reading"
    SENDING = "sending"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Upload(Owned):
    """An uploaded file that becomes a feed, and its progress.

    The file is in `<var>/uploads/<id>/`; its size there is the number of bytes received. Rows
    before `position` are in the feed's log, those up to `sending` were being appended: under the
    same idempotency key they are appended again, once (`uploads/loading.py`).
    """

    edit_role = Role.OPERATOR

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200, help_text="Of the file.")
    size = models.BigIntegerField()
    state = models.CharField(max_length=10, choices=UploadState.choices, default=UploadState.UPLOADING)
    paused_in = models.CharField(max_length=10, blank=True, help_text="The state that a paused one goes on with.")
    error = models.TextField(blank=True)
    reading = models.JSONField(default=dict)
    feed = models.ForeignKey(Feed, models.CASCADE, null=True, related_name="uploads")
    as_now = models.BooleanField(default=False, help_text="As if it happened now, instead of as history.")
    rate = models.FloatField(default=1.0, help_text="How many times faster than life, as if it happened now.")
    ordered = models.BooleanField(default=True, help_text="In the order of time, instead of the file's.")
    read = models.BigIntegerField(default=0, help_text="Rows of the file that were read.")
    rows = models.BigIntegerField(null=True, help_text="Rows to be sent; null until all are read.")
    position = models.BigIntegerField(default=0)
    sending = models.BigIntegerField(default=0)
    moved_since = models.BigIntegerField(default=0, help_text="This time of the file ...")
    moved_to = models.BigIntegerField(default=0, help_text="... became this one.")
    late = models.BigIntegerField(default=0)
    dead = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    touched_at = models.DateTimeField(auto_now=True)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"


class ConnectorState(models.TextChoices):
    """The state of a connector."""

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    BACKOFF = "backoff"


class ConnectorQuerySet(models.QuerySet["Connector"]):
    """Users who see a feed see its connectors; users who change the feed change them."""

    def visible_to(self, user: AnyUser) -> ConnectorQuerySet:
        return self.filter(feed__in=Feed.objects.visible_to(user))

    def failing(self) -> ConnectorQuerySet:
        """Those that keep failing, and those whose process does not run."""
        silent = models.Q(reported_at__lt=timezone.now() - SILENT)
        reported = self.annotate(reported_at=Coalesce("seen_at", "created_at"))
        return reported.filter(silent | ~models.Q(failing_since=None), enabled=True)

    def with_editable(self, user: AnyUser) -> ConnectorQuerySet:
        return self.annotate(editable=models.Exists(Feed.objects.editable_by(user).filter(pk=models.OuterRef("feed"))))


class Connector(models.Model):
    """A stream from outside that runs into a feed (decision 29), or answers of its queries
    that go out (decision 35).

    `offset` and the counters are those of messages in the log, or accepted by the other side.
    `revision` counts changes of the settings: deliveries from before a change do not move the new
    stream's offset.
    """

    feed = models.ForeignKey(Feed, models.CASCADE, related_name="connectors")
    name = models.CharField(max_length=100, validators=[NO_CONTROLS])
    kind = models.CharField(max_length=40)
    settings = models.JSONField(default=dict)
    secrets = EncryptedCharField(max_length=20_000, blank=True, help_text="The secret settings as JSON.")
    reading = models.JSONField(default=dict, help_text="What the columns of its records mean; empty: as the kind says, else as the feed's own names.")
    enabled = models.BooleanField(default=True)
    set_by = models.ForeignKey(
        "accounts.User", models.SET_NULL, null=True, editable=False, related_name="+", help_text="What this person may see goes out."
    )
    revision = models.PositiveIntegerField(default=0, editable=False)
    offset = models.JSONField(null=True, editable=False)
    messages = models.BigIntegerField(default=0, editable=False)
    merged = models.BigIntegerField(default=0, editable=False)
    rows = models.BigIntegerField(default=0, editable=False)
    dead = models.BigIntegerField(default=0, editable=False)
    state = models.CharField(max_length=10, choices=ConnectorState.choices, default=ConnectorState.STOPPED, editable=False)
    rate = models.FloatField(default=0.0, editable=False, help_text="Messages a second, lately.")
    failures = models.PositiveIntegerField(default=0, editable=False, help_text="Since it last ran well.")
    failing_since = models.DateTimeField(null=True, editable=False, help_text="Since when it has kept failing, as an event said; null: it does not.")
    last_error = models.TextField(blank=True, editable=False)
    last_error_at = models.DateTimeField(null=True, editable=False)
    last_message_at = models.DateTimeField(null=True, editable=False)
    next_try_at = models.DateTimeField(null=True, editable=False)
    seen_at = models.DateTimeField(null=True, editable=False, help_text="When the process that runs it last said how it goes.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ConnectorQuerySet.as_manager()

    class Meta:
        # Not named feeds_...: the reader's role may read those tables, but no secrets.
        db_table = "connectors"
        ordering = ("feed", "name")
        constraints = [models.UniqueConstraint(fields=["feed", "name"], name="connector_name_in_feed")]

    def __str__(self) -> str:
        return f"{self.name} of {self.feed.name}"

    @property
    def is_silent(self) -> bool:
        return self.enabled and timezone.now() - (self.seen_at or self.created_at) > SILENT


class IngestCounter(models.Model):
    """How many rows ingest has accounted for: `received` (into the log or dead) and `dead` of them.

    `log_seq` is the position of the feed's log up to which its rows, dead letters and
    receipts are counted here.
    """

    feed = models.OneToOneField(Feed, models.CASCADE, primary_key=True, related_name="ingest_counter")
    received = models.BigIntegerField(default=0)
    dead = models.BigIntegerField(default=0)
    log_seq = models.BigIntegerField(default=0)
    lost = models.BigIntegerField(default=0, help_text="Received rows that a damaged log lost before they were processed.")


class LogHead(models.Model):
    """Where a feed's log on shared storage ends. Its row is locked by the process that puts the
    next segment in its place."""

    feed = models.OneToOneField(Feed, models.CASCADE, primary_key=True, related_name="log_head")
    next_seq = models.BigIntegerField(default=0)
    max_t = models.BigIntegerField(null=True)
    moved_at = models.DateTimeField(default=timezone.now)


class LogSegment(models.Model):
    """A file of a feed's log and its place in it."""

    feed = models.ForeignKey(Feed, models.CASCADE, related_name="+")
    first_seq = models.BigIntegerField()
    rows = models.BigIntegerField()
    max_t = models.BigIntegerField(help_text="The greatest time of all rows of the log up to its last.")
    file = models.CharField(max_length=300)
    crc = models.BigIntegerField(null=True)
    ordered_at = models.DateTimeField(default=timezone.now)
    gone_at = models.DateTimeField(null=True, help_text="When another took its place; its file stays for an hour.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["feed", "first_seq"], condition=models.Q(gone_at=None), name="one_segment_at_a_place")]


class LogDamage(models.Model):
    """Why a feed is suspended: its log cannot be read. It is not processed until `manage.py repair`
    has repaired the log; the other feeds continue.
    """

    feed = models.OneToOneField(Feed, models.CASCADE, primary_key=True, related_name="damage")
    file = models.CharField(max_length=300, blank=True, help_text="Within the feed's folder; empty when a file is missing.")
    reason = models.TextField()
    found_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.sentence

    @property
    def sentence(self) -> Message:
        """The description for users."""
        reason, feed = untranslated(self.reason), self.feed.name
        if not self.file:
            return Message(
                "The log is damaged ({reason}). The feed is suspended until an operator runs: manage.py repair {feed}", reason=reason, feed=feed
            )
        return Message(
            "The log is damaged (file {file}: {reason}). The feed is suspended until an operator runs: manage.py repair {feed}",
            file=self.file,
            reason=reason,
            feed=feed,
        )


class DeadLetter(models.Model):
    """A row that was refused, with the reason; also the job's late rows."""

    feed = models.ForeignKey(Feed, models.CASCADE, related_name="dead_letters")
    reason = models.CharField(max_length=40)
    detail = models.TextField(blank=True)
    row = models.JSONField(null=True)
    line = models.BigIntegerField(null=True)
    source = models.CharField(max_length=200, blank=True)
    received_at = models.DateTimeField(default=timezone.now)
    sending = models.CharField(max_length=60, blank=True, default="", help_text="The key under which it is sent again; empty: it is not.")
    corrected = models.JSONField(null=True, help_text="The row that is sent in its place.")
    sent_at = models.DateTimeField(null=True, help_text="When that was in the log.")

    class Meta:
        ordering = ("-id",)
        indexes = [models.Index(fields=["feed", "-id"], name="dead_letters_of_feed")]


class IngestReceipt(models.Model):
    """The response to a request with an idempotency key: a repeated request gets the same one."""

    feed = models.ForeignKey(Feed, models.CASCADE, related_name="receipts")
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64, blank=True)
    first_seq = models.BigIntegerField(null=True)
    last_seq = models.BigIntegerField(null=True)
    accepted = models.BigIntegerField(default=0)
    dead = models.BigIntegerField(default=0)
    late = models.BigIntegerField(default=0)
    dead_letters = models.JSONField(default=list, help_text="The first few, as answered.")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["feed", "key"], name="one_receipt_for_a_key")]
        indexes = [models.Index(fields=["created_at"], name="receipts_by_age")]
