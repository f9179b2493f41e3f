"""An alert may end because its query was edited or switched off."""

from django.db import migrations, models

REASONS = [
    ("person", "By a person"),
    ("ended", "The interval ended"),
    ("withdrawn", "The answer was withdrawn"),
    ("removed", "The query was removed"),
    ("changed", "The query was edited or switched off"),
]


class Migration(migrations.Migration):
    dependencies = [("alerts", "0003_secrets_at_rest")]
    operations = [migrations.AlterField("alert", "resolution", models.CharField(blank=True, choices=REASONS, max_length=10))]
