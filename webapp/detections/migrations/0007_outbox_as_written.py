from __future__ import annotations

from django.db import migrations

import webapp.detections.models


class Migration(migrations.Migration):
    dependencies = [("detections", "0006_index_of_withdrawn")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE detections_outbox ALTER COLUMN payload TYPE json USING payload::json",
            "ALTER TABLE detections_outbox ALTER COLUMN payload TYPE jsonb USING payload::jsonb",
            state_operations=[migrations.AlterField("outbox", "payload", webapp.detections.models.JsonAsWritten())],
        ),
    ]
