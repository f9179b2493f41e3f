"""Answers are counted by ten minutes too: a day is read from a tenth of the rows."""

from django.db import migrations

ADD = """
INSERT INTO detections_count AS known SELECT * FROM (
    SELECT feed_id, query_id, version, kind, width, start - ((start % width) + width) % width AS bucket, sum(change) AS count
    FROM ({changed}) AS changed CROSS JOIN (VALUES (60000::bigint), (600000::bigint), (3600000::bigint)) AS widths (width)
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
FROM_MINUTES = """
INSERT INTO detections_count (feed_id, query_id, version, kind, width, bucket, count)
SELECT feed_id, query_id, version, kind, 600000, bucket - ((bucket % 600000) + 600000) % 600000, sum(count)
FROM detections_count WHERE width = 60000 GROUP BY 1, 2, 3, 4, 5, 6 HAVING sum(count) <> 0
"""
STATEMENTS = [*(FUNCTION.format(name=name, add=ADD.format(changed=changed)) for name, changed in FUNCTIONS.items()), FROM_MINUTES]


class Migration(migrations.Migration):
    dependencies = [("detections", "0004_counts_of_versions")]
    operations = [migrations.RunSQL(STATEMENTS, migrations.RunSQL.noop)]
