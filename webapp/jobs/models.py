"""Jobs, their events, and the progress of each feed."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from webapp.accounts.models import Team


class DesiredState(models.TextChoices):
    RUNNING = "running", "Running"
    STOPPED = "stopped", "Stopped"


class ObservedState(models.TextChoices):
    STARTING = "starting", "Starting"
    RUNNING = "running", "Running"
    STOPPING = "stopping", "Stopping"
    STOPPED = "stopped", "Stopped"
    BACKOFF = "backoff", "Waiting to start again"
    CRASH_LOOP = "crash_loop", "Keeps failing"


class Job(models.Model):
    """One Spark driver and its known state.

    `epoch` counts its starts: a process that writes with an older one is a zombie. `token` marks
    the processes of the present start in the process table. Only the reconciler that holds the
    lease (`lease_owner` until `lease_until`) starts and ends processes.
    """

    name = models.SlugField(max_length=63, unique=True)
    team = models.ForeignKey(Team, models.PROTECT, null=True, blank=True, related_name="+", help_text="Its feeds are this team's; none: anybody's.")
    desired_state = models.CharField(max_length=8, choices=DesiredState.choices, default=DesiredState.RUNNING)
    observed_state = models.CharField(max_length=10, choices=ObservedState.choices, default=ObservedState.STOPPED, editable=False)
    epoch = models.BigIntegerField(default=0, editable=False)
    token = models.CharField(max_length=40, blank=True, editable=False)
    lease_owner = models.CharField(max_length=100, blank=True, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    host = models.CharField(max_length=253, blank=True, editable=False)
    pid = models.IntegerField(null=True, editable=False)
    pid_started = models.FloatField(null=True, editable=False, help_text="Start of the process, seconds since the epoch.")
    pgid = models.IntegerField(null=True, editable=False)
    started_at = models.DateTimeField(null=True, editable=False)
    heartbeat = models.DateTimeField(null=True, editable=False)
    restarts = models.PositiveIntegerField(default=0, editable=False)
    failed_at = models.JSONField(default=list, editable=False, help_text="When starts failed or crashed lately, in seconds since the epoch.")
    start_after = models.DateTimeField(null=True, editable=False, help_text="Back-off: not started again before.")
    suspect_since = models.DateTimeField(null=True, editable=False, help_text="Since when it should have ended, or has given no sign of life.")
    last_error = models.TextField(blank=True, editable=False)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def failures(self) -> int:
        """Failed starts and crashes within the last minutes, unless someone
        has started the job since."""
        return len(self.failed_at)


class JobEvent(models.Model):
    """An event of a job, as text for users."""

    class Kind(models.TextChoices):
        STARTED = "started", "Started"
        READY = "ready", "Processing"
        ADOPTED = "adopted", "Adopted"
        STOPPED = "stopped", "Stopped"
        CRASHED = "crashed", "Crashed"
        KILLED = "killed", "Ended by force"
        ORPHAN = "orphan", "Leftover process ended"
        CRASH_LOOP = "crash_loop", "Keeps failing"
        REBUILT = "rebuilt", "State rebuilt from the log"
        REQUESTED = "requested", "Requested by a user"
        QUERY = "query", "Query stopped"
        DAMAGED = "damaged", "Log damaged"
        REPAIRED = "repaired", "Log repaired"
        STALLED = "stalled", "Stalled"
        RESUMED = "resumed", "Resumed"
        UNREADABLE = "unreadable", "File not read"
        CONNECTOR_FAILED = "connector_failed", "Connector keeps failing"
        CONNECTOR_RUNS = "connector_runs", "Connector runs again"

    job = models.ForeignKey(Job, models.CASCADE, related_name="events")
    feed = models.ForeignKey("feeds.Feed", models.CASCADE, null=True, related_name="events", help_text="The one feed that it is about.")
    at = models.DateTimeField(default=timezone.now)
    kind = models.CharField(max_length=20, choices=Kind.choices)
    text = models.TextField()

    class Meta:
        ordering = ("-id",)
        indexes = [models.Index(fields=["job", "-id"], name="events_of_job"), models.Index(fields=["feed", "-id"], name="events_of_feed")]

    def __str__(self) -> str:
        return f"{self.job} {self.kind}: {self.text}"


class FeedHead(models.Model):
    """The progress of a feed: the row that fences zombies and orders the outbox. Locked by the
    process that adds to the outbox.

    Batches are numbered within a checkpoint generation; (`checkpoint`, `last_batch`) only grows.
    `last_seq` is the last row of the log in stored answers (-1: none), stored at `updated_at`.
    `snapshot` names the newest state snapshot, taken at `snapshot_seq` <= `last_seq` under the
    queries `queries` ([[id, version], ...]), those that have joined; `query_version` is the
    feed's version they belong to.
    """

    feed = models.OneToOneField("feeds.Feed", models.CASCADE, primary_key=True, related_name="head")
    job = models.ForeignKey(Job, models.PROTECT, related_name="heads")
    epoch = models.BigIntegerField(default=0)
    commits = models.BigIntegerField(default=0, help_text="Transactions so far: tells a job whether one whose answer was lost took place.")
    checkpoint = models.PositiveIntegerField(default=0)
    last_batch = models.BigIntegerField(default=-1)
    last_seq = models.BigIntegerField(default=-1)
    outbox_seq = models.BigIntegerField(default=0)
    query_version = models.BigIntegerField(default=0)
    queries = models.JSONField(default=list)
    snapshot = models.CharField(max_length=100, blank=True)
    snapshot_seq = models.BigIntegerField(default=-1)
    watermark = models.BigIntegerField(null=True)
    max_t = models.BigIntegerField(null=True)
    processed = models.BigIntegerField(default=0)
    duplicates = models.BigIntegerField(default=0)
    late = models.BigIntegerField(default=0)
    batch_ms = models.FloatField(null=True)
    rows_per_s = models.FloatField(null=True)
    catching_up = models.JSONField(null=True, help_text='{"queries": [id, ...], "read": rows, "rows": rows} while new queries read the history.')
    updated_at = models.DateTimeField(null=True)
    stalled_at = models.DateTimeField(null=True, help_text="Since when it has been stalled while rows wait; null: it is not.")

    def __str__(self) -> str:
        return f"{self.feed} at {self.last_seq}"


class FeedMeasure(models.Model):
    """The state of a feed's processing at one moment of the last day, for the
    initial data of its charts.

    `rows_per_s` is 0 while nothing is processed. `lag` is how far the watermark is behind, in the
    feed's unit: behind the wall clock on a feed of the wall clock, else behind the newest event.
    """

    feed = models.ForeignKey("feeds.Feed", models.CASCADE, related_name="measures")
    at = models.DateTimeField(default=timezone.now)
    rows_per_s = models.FloatField(null=True)
    lag = models.BigIntegerField(null=True)
    batch_ms = models.FloatField(null=True)

    class Meta:
        ordering = ("at",)
        indexes = [models.Index(fields=["feed", "at"], name="measures_of_feed")]

    def __str__(self) -> str:
        return f"{self.feed} at {self.at}"
