"""Answers that were taken back are few, and a page that looks at the past asks for them: without an index all answers of a day were read, 4 s of 1.7
million."""

from django.db import migrations

INDEX = "CREATE INDEX detections_withdrawn ON detections_detection (feed_id, start) WHERE weight = 0"


class Migration(migrations.Migration):
    dependencies = [("detections", "0005_counts_of_ten_minutes")]
    operations = [migrations.RunSQL(INDEX, "DROP INDEX detections_withdrawn")]
