"""The registry of entities."""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import webapp.config.documents


class Migration(migrations.Migration):
    replaces = [("entities", "0001_initial"), ("entities", "0002_learned"), ("entities", "0003_no_direction_marks")]

    initial = True

    dependencies = [
        ("feeds", "0012_no_direction_marks"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Note",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("entity", models.CharField(max_length=500)),
                ("text", models.TextField(max_length=4000)),
                ("at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("author", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("feed", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="notes", to="feeds.feed")),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [models.Index(fields=["feed", "entity", "-id"], name="notes_of_entity")],
            },
        ),
        migrations.CreateModel(
            name="Record",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "entity",
                    models.CharField(
                        max_length=500,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[^\\x00-\\x1f\\x7f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]+\\Z",
                                "No control characters, nor invisible marks that change the direction of writing (such as U+202E).",
                            )
                        ],
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        blank=True,
                        max_length=100,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[^\\x00-\\x1f\\x7f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]+\\Z",
                                "No control characters, nor invisible marks that change the direction of writing (such as U+202E).",
                            )
                        ],
                    ),
                ),
                ("attributes", webapp.config.documents.DocumentField(blank=True, default=dict, help_text="Attribute name to text.")),
                (
                    "learned",
                    webapp.config.documents.DocumentField(
                        blank=True, default=dict, help_text="What a stream last said, with its name: what differs from it was written by people."
                    ),
                ),
                ("feed", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="records", to="feeds.feed")),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("feed", "entity"), name="one_record_for_an_entity")],
            },
        ),
        migrations.CreateModel(
            name="Watch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("entity", models.CharField(max_length=500)),
                ("position", models.BigIntegerField(help_text="Rows of the log before this one have been looked at.")),
                (
                    "reported_t",
                    models.BigIntegerField(help_text="The time of its first row after the watch began; null while it is silent.", null=True),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("feed", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="feeds.feed")),
                ("user", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="watches", to=settings.AUTH_USER_MODEL)),
            ],
            options={
                "ordering": ("-id",),
                "constraints": [models.UniqueConstraint(fields=("user", "feed", "entity"), name="one_watch_for_a_person")],
            },
        ),
    ]
