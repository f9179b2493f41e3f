"""Files that are shown on maps."""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import webapp.config.documents


class Migration(migrations.Migration):
    replaces = [("overlays", "0001_initial"), ("overlays", "0002_no_direction_marks")]

    initial = True

    dependencies = [
        ("feeds", "0012_no_direction_marks"),
    ]

    operations = [
        migrations.CreateModel(
            name="Overlay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.CharField(
                        max_length=100,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[^\\x00-\\x1f\\x7f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]+\\Z",
                                "No control characters, nor invisible marks that change the direction of writing (such as U+202E).",
                            )
                        ],
                    ),
                ),
                ("document", webapp.config.documents.DocumentField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("feed", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="overlays", to="feeds.feed")),
            ],
            options={
                "ordering": ("name",),
                "constraints": [models.UniqueConstraint(fields=("feed", "name"), name="overlay_name_in_feed")],
            },
        ),
    ]
