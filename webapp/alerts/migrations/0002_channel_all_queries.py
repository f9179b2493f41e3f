from typing import Any

from django.db import migrations, models


def chosen_queries_stay(apps: Any, schema_editor: Any) -> None:
    """Until now a channel with queries carried these alone."""
    channels = apps.get_model("alerts", "Channel").objects
    channels.filter(pk__in=channels.filter(queries__isnull=False).values("pk")).update(all_queries=False)


class Migration(migrations.Migration):
    dependencies = [("alerts", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="channel",
            name="all_queries",
            field=models.BooleanField(default=True, help_text="Also those registered later; else the chosen ones only."),
        ),
        migrations.RunPython(chosen_queries_stay, migrations.RunPython.noop),
    ]
