"""Detections, partitioned by start with raw SQL, and the outbox."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

CREATE = """
CREATE TABLE detections_detection (
    feed_id bigint NOT NULL,
    key bytea NOT NULL,
    query_id bigint NOT NULL,
    version integer NOT NULL,
    kind text NOT NULL,
    entities text[] NOT NULL,
    value text,
    score double precision,
    start bigint NOT NULL,
    "end" bigint,
    evidence jsonb,
    weight smallint NOT NULL,
    backfill boolean NOT NULL,
    seq bigint NOT NULL,
    detected_at bigint NOT NULL,
    PRIMARY KEY (feed_id, key, start)
) PARTITION BY RANGE (start);
CREATE INDEX detections_of_query ON detections_detection (query_id, start);
CREATE INDEX detections_of_feed ON detections_detection (feed_id, start);
CREATE INDEX detections_lasting ON detections_detection (feed_id, "end") WHERE "end" IS NULL OR "end" > start;
CREATE INDEX detections_of_entity ON detections_detection USING gin (entities);
CREATE INDEX detections_by_start ON detections_detection USING brin (start, "end") WITH (pages_per_range = 32);
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("feeds", "0001_initial"),
        ("queries", "0001_initial"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(CREATE, "DROP TABLE detections_detection")],
            state_operations=[
                migrations.CreateModel(
                    name="Detection",
                    fields=[
                        ("pk", models.CompositePrimaryKey("feed_id", "key", "start", blank=True, editable=False, primary_key=True, serialize=False)),
                        ("key", models.BinaryField(max_length=16)),
                        ("version", models.PositiveIntegerField()),
                        ("kind", models.TextField()),
                        ("entities", django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                        ("value", models.TextField(null=True)),
                        ("score", models.FloatField(null=True)),
                        ("start", models.BigIntegerField()),
                        ("end", models.BigIntegerField(null=True)),
                        ("evidence", models.JSONField(null=True)),
                        ("weight", models.SmallIntegerField(default=1)),
                        ("backfill", models.BooleanField(default=False)),
                        ("seq", models.BigIntegerField()),
                        ("detected_at", models.BigIntegerField(help_text="Processing time, milliseconds since the epoch.")),
                        (
                            "feed",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="detections",
                                to="feeds.feed",
                            ),
                        ),
                        (
                            "query",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="detections",
                                to="queries.query",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ("-start",),
                    },
                ),
            ],
        ),
        migrations.CreateModel(
            name="Outbox",
            fields=[
                ("pk", models.CompositePrimaryKey("feed_id", "seq", blank=True, editable=False, primary_key=True, serialize=False)),
                ("seq", models.BigIntegerField()),
                ("payload", models.JSONField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("feed", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="outbox", to="feeds.feed")),
            ],
            options={
                "verbose_name_plural": "outbox",
                "ordering": ("feed", "seq"),
                "indexes": [models.Index(fields=["created_at"], name="outbox_by_age")],
            },
        ),
    ]
