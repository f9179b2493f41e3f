"""How many answers begin in each minute and each hour, kept by the database in the transaction that stores them."""

from django.db import migrations, models

CREATE = """
CREATE TABLE detections_count (
    feed_id bigint NOT NULL, query_id bigint NOT NULL, kind text NOT NULL, width bigint NOT NULL, bucket bigint NOT NULL, count bigint NOT NULL,
    PRIMARY KEY (feed_id, width, bucket, query_id, kind)
) WITH (fillfactor = 70)
"""
# The rows of a statement are added up before they are written; keys are taken in one order, so two
# writers cannot wait for each other.
ADD = """
INSERT INTO detections_count AS known SELECT * FROM (
    SELECT feed_id, query_id, kind, width, start - ((start % width) + width) % width AS bucket, sum(change) AS count
    FROM ({changed}) AS changed CROSS JOIN (VALUES (60000::bigint), (3600000::bigint)) AS widths (width)
    WHERE start > -9200000000000000000
    GROUP BY feed_id, query_id, kind, width, bucket HAVING sum(change) <> 0
) AS added ORDER BY feed_id, width, bucket, query_id, kind
ON CONFLICT (feed_id, width, bucket, query_id, kind) DO UPDATE SET count = known.count + excluded.count
"""
TRIGGER = """
CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {add}; RETURN NULL; END $$;
CREATE TRIGGER {name} AFTER {event} ON detections_detection REFERENCING {tables} FOR EACH STATEMENT EXECUTE FUNCTION {name}()
"""
ROWS = "SELECT feed_id, query_id, kind, start, {sign}weight AS change FROM {table}"
NEW, OLD = ROWS.format(sign="", table="new_rows"), ROWS.format(sign="-", table="old_rows")
TRIGGERS = [
    ("detections_counted_in", "INSERT", "NEW TABLE AS new_rows", NEW),
    ("detections_counted_again", "UPDATE", "OLD TABLE AS old_rows NEW TABLE AS new_rows", f"{NEW} UNION ALL {OLD}"),
    ("detections_counted_out", "DELETE", "OLD TABLE AS old_rows", OLD),
]
STATEMENTS = [
    CREATE,
    *(TRIGGER.format(name=name, event=event, tables=tables, add=ADD.format(changed=changed)) for name, event, tables, changed in TRIGGERS),
    ADD.format(changed=ROWS.format(sign="", table="detections_detection")),
]
AWAY = [
    *(f"DROP TRIGGER {name} ON detections_detection; DROP FUNCTION {name}" for name, *_ in TRIGGERS),
    "DROP TABLE detections_count",
]
STATE = migrations.CreateModel(
    name="AnswerCount",
    fields=[
        (
            "pk",
            models.CompositePrimaryKey(
                "feed_id", "width", "bucket", "query_id", "kind", blank=True, editable=False, primary_key=True, serialize=False
            ),
        ),
        ("feed_id", models.BigIntegerField()),
        ("query_id", models.BigIntegerField()),
        ("kind", models.TextField()),
        ("width", models.BigIntegerField()),
        ("bucket", models.BigIntegerField()),
        ("count", models.BigIntegerField()),
    ],
    options={"db_table": "detections_count"},
)


class Migration(migrations.Migration):
    dependencies = [("detections", "0002_partition_functions")]
    operations = [migrations.RunSQL(STATEMENTS, AWAY, state_operations=[STATE])]
