"""Queries, their versions, stops and tags."""

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import webapp.config.documents


class Migration(migrations.Migration):
    replaces = [
        ("queries", "0001_initial"),
        ("queries", "0002_querystop"),
        ("queries", "0003_versions_left"),
        ("queries", "0004_query_derives_from"),
        ("queries", "0005_query_folder_tags"),
        ("queries", "0006_query_calls"),
        ("queries", "0007_no_direction_marks"),
    ]

    initial = True

    dependencies = [
        ("accounts", "0006_user_language"),
        ("feeds", "0012_no_direction_marks"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Query",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("public", models.BooleanField(default=False, help_text="Everyone who is logged in may read it.")),
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
                ("description", models.TextField(blank=True, max_length=2000)),
                ("family", models.CharField(max_length=20)),
                ("specification", webapp.config.documents.DocumentField(help_text="As written; references to stored regions are kept.")),
                ("version", models.PositiveIntegerField(default=1, editable=False)),
                ("enabled", models.BooleanField(default=True)),
                (
                    "severity",
                    models.CharField(
                        choices=[("info", "Info"), ("low", "Low"), ("high", "High"), ("critical", "Critical")], default="low", max_length=10
                    ),
                ),
                (
                    "alert_kinds",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100), blank=True, default=list, size=None),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("deleted_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "folder",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Where lists show it, such as Harbour/Night.",
                        max_length=200,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[^\\x00-\\x1f\\x7f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]+\\Z",
                                "No control characters, nor invisible marks that change the direction of writing (such as U+202E).",
                            )
                        ],
                    ),
                ),
                (
                    "tags",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            max_length=50,
                            validators=[
                                django.core.validators.RegexValidator(
                                    "^[^\\x00-\\x1f\\x7f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]+\\Z",
                                    "No control characters, nor invisible marks that change the direction of writing (such as U+202E).",
                                )
                            ],
                        ),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                ("calls", models.CharField(choices=[("each", "Each"), ("once", "One while it lasts")], default="each", max_length=10)),
                (
                    "calls_per_hour",
                    models.PositiveIntegerField(
                        blank=True, null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(600)]
                    ),
                ),
                (
                    "derives_from",
                    models.ManyToManyField(
                        blank=True, help_text="Queries whose answers are events of it.", related_name="derived_by", to="queries.query"
                    ),
                ),
                ("feed", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="queries", to="feeds.feed")),
                ("owner", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("regions", models.ManyToManyField(blank=True, help_text="Stored regions that it names.", related_name="queries", to="feeds.region")),
                (
                    "team",
                    models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="accounts.team"),
                ),
            ],
            options={
                "verbose_name_plural": "queries",
                "ordering": ("name", "id"),
                "constraints": [
                    models.UniqueConstraint(condition=models.Q(("deleted_at", None)), fields=("feed", "name"), name="query_name_in_feed")
                ],
            },
        ),
        migrations.CreateModel(
            name="QueryStop",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField()),
                ("reason", models.TextField()),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("query", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="stops", to="queries.query")),
            ],
            options={
                "ordering": ("query", "version"),
                "constraints": [models.UniqueConstraint(fields=("query", "version"), name="stop_of_version")],
            },
        ),
        migrations.CreateModel(
            name="QueryVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField()),
                ("document", webapp.config.documents.DocumentField()),
                ("specification", webapp.config.documents.DocumentField()),
                ("from_feed_version", models.BigIntegerField()),
                ("to_feed_version", models.BigIntegerField(null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("left_at", models.BigIntegerField(null=True)),
                ("left_seq", models.BigIntegerField(null=True)),
                (
                    "created_by",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
                ("query", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="versions", to="queries.query")),
            ],
            options={
                "ordering": ("query", "version"),
                "constraints": [
                    models.UniqueConstraint(fields=("query", "version"), name="version_of_query"),
                    models.UniqueConstraint(condition=models.Q(("to_feed_version", None)), fields=("query",), name="one_current_version"),
                    models.CheckConstraint(
                        condition=models.Q(("to_feed_version", None), ("to_feed_version__gt", models.F("from_feed_version")), _connector="OR"),
                        name="version_span",
                    ),
                ],
            },
        ),
    ]
