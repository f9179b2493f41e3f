"""Counts are kept for each version of a query: those of versions that were edited away are not shown."""

from django.db import migrations, models

CREATE = """
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
    FROM ({changed}) AS changed CROSS JOIN (VALUES (60000::bigint), (3600000::bigint)) AS widths (width)
    WHERE start > -9200000000000000000
    GROUP BY feed_id, query_id, version, kind, width, bucket HAVING sum(change) <> 0
) AS added ORDER BY feed_id, width, bucket, query_id, version, kind
ON CONFLICT (feed_id, width, bucket, query_id, version, kind) DO UPDATE SET count = known.count + excluded.count
"""
FUNCTION = "CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {add}; RETURN NULL; END $$"
ROWS = "SELECT feed_id, query_id, version, kind, start, {sign}weight AS change FROM {table}"
NEW, OLD = ROWS.format(sign="", table="new_rows"), ROWS.format(sign="-", table="old_rows")
FUNCTIONS = {
    "detections_counted_in": NEW,
    "detections_counted_again": f"{NEW} UNION ALL {OLD}",
    "detections_counted_out": OLD,
}
STATEMENTS = [
    "DROP TABLE detections_count",
    CREATE,
    *(FUNCTION.format(name=name, add=ADD.format(changed=changed)) for name, changed in FUNCTIONS.items()),
    ADD.format(changed=ROWS.format(sign="", table="detections_detection")),
]
STATE = [
    migrations.DeleteModel("AnswerCount"),
    migrations.CreateModel(
        name="AnswerCount",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "feed_id", "width", "bucket", "query_id", "version", "kind", blank=True, editable=False, primary_key=True, serialize=False
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
        options={"db_table": "detections_count"},
    ),
]


class Migration(migrations.Migration):
    dependencies = [("detections", "0003_counts"), ("queries", "0003_versions_left")]
    operations = [migrations.RunSQL(STATEMENTS, migrations.RunSQL.noop, state_operations=STATE)]
