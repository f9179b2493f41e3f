"""Measures of feeds, for their charts."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0004_jobs_of_teams"), ("feeds", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="FeedMeasure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("rows_per_s", models.FloatField(null=True)),
                ("lag", models.BigIntegerField(null=True)),
                ("batch_ms", models.FloatField(null=True)),
                ("feed", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="measures", to="feeds.feed")),
            ],
            options={
                "ordering": ("at",),
                "indexes": [models.Index(fields=["feed", "at"], name="measures_of_feed")],
            },
        )
    ]
