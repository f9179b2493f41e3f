"""How far new queries have read the history is null when none reads it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0009_failing_connectors"),
    ]

    operations = [
        migrations.AlterField(
            model_name="feedhead",
            name="catching_up",
            field=models.JSONField(null=True, help_text='{"queries": [id, ...], "read": rows, "rows": rows} while new queries read the history.'),
        ),
        migrations.RunSQL("UPDATE jobs_feedhead SET catching_up = NULL", migrations.RunSQL.noop),
    ]
