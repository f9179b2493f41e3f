"""Queries that derive from others."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("queries", "0003_versions_left")]
    operations = [
        migrations.AddField(
            "query",
            "derives_from",
            models.ManyToManyField(blank=True, help_text="Queries whose answers are events of it.", related_name="derived_by", to="queries.query"),
        ),
    ]
