"""Detections, partitioned by start, the functions that make and drop their partitions, the counts that triggers keep, and the outbox."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import webapp.detections.models

DETECTIONS = """
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
CREATE INDEX detections_withdrawn ON detections_detection (feed_id, start) WHERE weight = 0;
"""
# `search_path` is fixed, so that nobody can put a table or function of their own before the ones
# that are meant.
PARTITION_FUNCTIONS = """
CREATE FUNCTION public.detections_partition_name(span integer) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF span IS NULL OR span NOT BETWEEN -1101 AND 7801 THEN
        RAISE EXCEPTION 'no partition has the number %', span;
    END IF;
    RETURN 'detections_' || CASE WHEN span < 0 THEN 'n' ELSE 'p' END || lpad(abs(span)::text, 5, '0');
END $$;

-- Made beside and attached: that blocks neither readers nor writers of the others. Intervals are updated when they end: room on the page
-- keeps most of those updates away from the indexes.
CREATE FUNCTION public.detections_partition_ensure(span integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := public.detections_partition_name(span);
    low text := CASE WHEN span < -1100 THEN 'MINVALUE' ELSE (span::bigint * 604800000)::text END;
    high text := CASE WHEN span > 7800 THEN 'MAXVALUE' ELSE ((span::bigint + 1) * 604800000)::text END;
BEGIN
    PERFORM pg_advisory_xact_lock(1986291060);
    IF to_regclass('public.' || name) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE public.%I (LIKE public.detections_detection INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name);
    EXECUTE format('ALTER TABLE public.%I SET (fillfactor = 90)', name);
    EXECUTE format('ALTER TABLE public.detections_detection ATTACH PARTITION public.%I FOR VALUES FROM (%s) TO (%s)', name, low, high);
    RETURN true;
END $$;

CREATE FUNCTION public.detections_partition_drop(span integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1986291060);
    EXECUTE format('DROP TABLE IF EXISTS public.%I', public.detections_partition_name(span));
END $$;

REVOKE EXECUTE ON FUNCTION public.detections_partition_ensure(integer), public.detections_partition_drop(integer) FROM PUBLIC;
"""
COUNTS = """
CREATE TABLE detections_count (
    feed_id bigint NOT NULL, query_id bigint NOT NULL, version integer NOT NULL, kind text NOT NULL, width bigint NOT NULL,
    bucket bigint NOT NULL, count bigint NOT NULL,
    PRIMARY KEY (feed_id, width, bucket, query_id, version, kind)
) WITH (fillfactor = 70)
"""
# The rows of a statement are added up before they are written; keys are taken in one order, so two
# writers cannot wait for each other.
ADD = """
INSERT INTO detections_count AS known SELECT * FROM (
    SELECT feed_id, query_id, version, kind, width, start - ((start % width) + width) % width AS bucket, sum(change) AS count
    FROM ({changed}) AS changed CROSS JOIN (VALUES (60000::bigint), (600000::bigint), (3600000::bigint)) AS widths (width)
    WHERE start > -9200000000000000000
    GROUP BY feed_id, query_id, version, kind, width, bucket HAVING sum(change) <> 0
) AS added ORDER BY feed_id, width, bucket, query_id, version, kind
ON CONFLICT (feed_id, width, bucket, query_id, version, kind) DO UPDATE SET count = known.count + excluded.count
"""
TRIGGER = """
CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {add}; RETURN NULL; END $$;
CREATE TRIGGER {name} AFTER {event} ON detections_detection REFERENCING {tables} FOR EACH STATEMENT EXECUTE FUNCTION {name}()
"""
ROWS = "SELECT feed_id, query_id, version, kind, start, {sign}weight AS change FROM {table}"
NEW, OLD = ROWS.format(sign="", table="new_rows"), ROWS.format(sign="-", table="old_rows")
TRIGGERS = [
    ("detections_counted_in", "INSERT", "NEW TABLE AS new_rows", NEW),
    ("detections_counted_again", "UPDATE", "OLD TABLE AS old_rows NEW TABLE AS new_rows", f"{NEW} UNION ALL {OLD}"),
    ("detections_counted_out", "DELETE", "OLD TABLE AS old_rows", OLD),
]
STATEMENTS = [
    DETECTIONS,
    PARTITION_FUNCTIONS,
    COUNTS,
    *(TRIGGER.format(name=name, event=event, tables=tables, add=ADD.format(changed=changed)) for name, event, tables, changed in TRIGGERS),
]
AWAY = [
    "DROP TABLE detections_detection, detections_count",
    f"DROP FUNCTION {', '.join(name for name, *_ in TRIGGERS)}",
    "DROP FUNCTION public.detections_partition_ensure(integer), public.detections_partition_drop(integer), public.detections_partition_name(integer)",
]


class Migration(migrations.Migration):
    replaces = [
        ("detections", "0001_initial"),
        ("detections", "0002_partition_functions"),
        ("detections", "0003_counts"),
        ("detections", "0004_counts_of_versions"),
        ("detections", "0005_counts_of_ten_minutes"),
        ("detections", "0006_index_of_withdrawn"),
        ("detections", "0007_outbox_as_written"),
    ]

    initial = True

    dependencies = [
        ("feeds", "0012_no_direction_marks"),
        ("queries", "0007_no_direction_marks"),
    ]

    operations = [
        migrations.RunSQL(
            STATEMENTS,
            AWAY,
            state_operations=[
                migrations.CreateModel(
                    name="AnswerCount",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "feed_id",
                                "width",
                                "bucket",
                                "query_id",
                                "version",
                                "kind",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("feed_id", models.BigIntegerField()),
                        ("query_id", models.BigIntegerField()),
                        ("version", models.IntegerField()),
                        ("kind", models.TextField()),
                        ("width", models.BigIntegerField()),
                        ("bucket", models.BigIntegerField()),
                        ("count", models.BigIntegerField()),
                    ],
                    options={
                        "db_table": "detections_count",
                    },
                ),
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
                ("payload", webapp.detections.models.JsonAsWritten()),
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
