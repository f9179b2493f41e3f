"""Stored answers and the outbox."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from webapp.feeds.models import Feed
from webapp.queries.models import Query


class Detection(models.Model):
    """One fact that a query asserted. The table is partitioned by `start`
    (`webapp.detections.partitions`).

    `key` is the natural key (`engine.sinks.keys`); `end` null: it still holds; `weight` 1, or 0
    once retracted; `backfill`: found in history when the query joined; `seq` is the outbox number
    it was last pushed under. No foreign keys in the database: millions of rows a day pay for each
    one, and rows are written by the job alone.
    """

    pk = models.CompositePrimaryKey("feed_id", "key", "start")
    feed = models.ForeignKey(Feed, models.DO_NOTHING, related_name="detections", db_constraint=False, db_index=False)
    key = models.BinaryField(max_length=16)
    query = models.ForeignKey(Query, models.DO_NOTHING, related_name="detections", db_constraint=False, db_index=False)
    version = models.PositiveIntegerField()
    kind = models.TextField()
    entities = ArrayField(models.TextField())
    value = models.TextField(null=True)
    score = models.FloatField(null=True)
    start = models.BigIntegerField()
    end = models.BigIntegerField(null=True)
    evidence = models.JSONField(null=True)
    weight = models.SmallIntegerField(default=1)
    backfill = models.BooleanField(default=False)
    seq = models.BigIntegerField()
    detected_at = models.BigIntegerField(help_text="Processing time, milliseconds since the epoch.")

    class Meta:
        ordering = ("-start",)

    def __str__(self) -> str:
        return f"{self.query_id} {self.kind} {', '.join(self.entities)} from {self.start}"


class AnswerCount(models.Model):
    """How many answers of a version of a query, of one kind, begin in `[bucket, bucket + width)`.

    Kept by triggers of the detections table, for widths of a minute and an hour. Retracted answers
    do not count. Widths are in the feed's unit.
    """

    pk = models.CompositePrimaryKey("feed_id", "width", "bucket", "query_id", "version", "kind")
    feed_id = models.BigIntegerField()
    query_id = models.BigIntegerField()
    version = models.IntegerField()
    kind = models.TextField()
    width = models.BigIntegerField()
    bucket = models.BigIntegerField()
    count = models.BigIntegerField()

    class Meta:
        db_table = "detections_count"

    def __str__(self) -> str:
        return f"{self.count} of {self.query_id} {self.kind} from {self.bucket}"


class JsonAsWritten(models.JSONField):
    """JSON that the database stores as text: it is read as often as it is written, and never
    searched.

    Measured for an answer: 5.8 µs instead of 10 µs to be stored.
    """

    def db_type(self, connection: Any) -> str:
        return "json"

    def select_format(self, compiler: Any, sql: str, params: Any) -> Any:
        # The driver would read it, as JSONField does.
        return f"({sql})::text", params


class Outbox(models.Model):
    """The changes for browsers, numbered without gaps for each feed in the order of the commits.

    `payload` is `{"detections": [...], "alerts": [...]}` as ARCHITECTURE.md,
    WebSocket, describes them.
    """

    pk = models.CompositePrimaryKey("feed_id", "seq")
    feed = models.ForeignKey(Feed, models.CASCADE, related_name="outbox", db_index=False)
    seq = models.BigIntegerField()
    payload = JsonAsWritten()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("feed", "seq")
        verbose_name_plural = "outbox"
        indexes = [models.Index(fields=["created_at"], name="outbox_by_age")]

    def __str__(self) -> str:
        return f"{self.feed_id} {self.seq}"
