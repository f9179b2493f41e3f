"""Uploads, connectors, and the order of logs on shared storage."""

import uuid

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import webapp.config.secrets_at_rest


class Migration(migrations.Migration):
    replaces = [
        ("feeds", "0005_uploads"),
        ("feeds", "0006_connectors"),
        ("feeds", "0007_mended_letters"),
        ("feeds", "0008_shared_logs"),
        ("feeds", "0009_answers_out"),
        ("feeds", "0010_corrected_letters"),
        ("feeds", "0011_failing_connectors"),
        ("feeds", "0012_no_direction_marks"),
    ]

    dependencies = [
        ("accounts", "0006_user_language"),
        ("feeds", "0004_quotas_and_feed_tokens"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="LogHead",
            fields=[
                (
                    "feed",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name="log_head", serialize=False, to="feeds.feed"
                    ),
                ),
                ("next_seq", models.BigIntegerField(default=0)),
                ("max_t", models.BigIntegerField(null=True)),
                ("moved_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.AddField(
            model_name="deadletter",
            name="corrected",
            field=models.JSONField(help_text="The row that is sent in its place.", null=True),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="sending",
            field=models.CharField(blank=True, default="", help_text="The key under which it is sent again; empty: it is not.", max_length=60),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="sent_at",
            field=models.DateTimeField(help_text="When that was in the log.", null=True),
        ),
        migrations.AlterField(
            model_name="region",
            name="name",
            field=models.CharField(
                max_length=100,
                validators=[
                    django.core.validators.RegexValidator(
                        "^[^\\x00-\\x1f\\x7f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]+\\Z",
                        "No control characters, nor invisible marks that change the direction of writing (such as U+202E).",
                    )
                ],
            ),
        ),
        migrations.CreateModel(
            name="Upload",
            fields=[
                ("public", models.BooleanField(default=False, help_text="Everyone who is logged in may read it.")),
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(help_text="Of the file.", max_length=200)),
                ("size", models.BigIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("uploading", "Uploading"),
                            ("ready", "Ready"),
                            ("reading", "Reading"),
                            ("sending", "Sending"),
                            ("paused", "Paused"),
                            ("done", "Done"),
                            ("cancelled", "Cancelled"),
                            ("failed", "Failed"),
                        ],
                        default="uploading",
                        max_length=10,
                    ),
                ),
                ("paused_in", models.CharField(blank=True, help_text="The state that a paused one goes on with.", max_length=10)),
                ("error", models.TextField(blank=True)),
                ("reading", models.JSONField(default=dict)),
                ("as_now", models.BooleanField(default=False, help_text="As if it happened now, instead of as history.")),
                ("rate", models.FloatField(default=1.0, help_text="How many times faster than life, as if it happened now.")),
                ("ordered", models.BooleanField(default=True, help_text="In the order of time, instead of the file's.")),
                ("read", models.BigIntegerField(default=0, help_text="Rows of the file that were read.")),
                ("rows", models.BigIntegerField(help_text="Rows to be sent; null until all are read.", null=True)),
                ("position", models.BigIntegerField(default=0)),
                ("sending", models.BigIntegerField(default=0)),
                ("moved_since", models.BigIntegerField(default=0, help_text="This time of the file ...")),
                ("moved_to", models.BigIntegerField(default=0, help_text="... became this one.")),
                ("late", models.BigIntegerField(default=0)),
                ("dead", models.BigIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("touched_at", models.DateTimeField(auto_now=True)),
                ("feed", models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="uploads", to="feeds.feed")),
                ("owner", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                (
                    "team",
                    models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="accounts.team"),
                ),
            ],
            options={
                "ordering": ("-created_at",),
            },
        ),
        migrations.CreateModel(
            name="Connector",
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
                ("kind", models.CharField(max_length=40)),
                ("settings", models.JSONField(default=dict)),
                ("secrets", webapp.config.secrets_at_rest.EncryptedCharField(blank=True, help_text="The secret settings as JSON.", max_length=20000)),
                (
                    "reading",
                    models.JSONField(
                        default=dict, help_text="What the columns of its records mean; empty: as the kind says, else as the feed's own names."
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("revision", models.PositiveIntegerField(default=0, editable=False)),
                ("offset", models.JSONField(editable=False, null=True)),
                ("messages", models.BigIntegerField(default=0, editable=False)),
                ("merged", models.BigIntegerField(default=0, editable=False)),
                ("rows", models.BigIntegerField(default=0, editable=False)),
                ("dead", models.BigIntegerField(default=0, editable=False)),
                (
                    "state",
                    models.CharField(
                        choices=[("stopped", "Stopped"), ("starting", "Starting"), ("running", "Running"), ("backoff", "Backoff")],
                        default="stopped",
                        editable=False,
                        max_length=10,
                    ),
                ),
                ("rate", models.FloatField(default=0.0, editable=False, help_text="Messages a second, lately.")),
                ("failures", models.PositiveIntegerField(default=0, editable=False, help_text="Since it last ran well.")),
                ("last_error", models.TextField(blank=True, editable=False)),
                ("last_error_at", models.DateTimeField(editable=False, null=True)),
                ("last_message_at", models.DateTimeField(editable=False, null=True)),
                ("next_try_at", models.DateTimeField(editable=False, null=True)),
                ("seen_at", models.DateTimeField(editable=False, help_text="When the process that runs it last said how it goes.", null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "failing_since",
                    models.DateTimeField(editable=False, help_text="Since when it has kept failing, as an event said; null: it does not.", null=True),
                ),
                ("feed", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="connectors", to="feeds.feed")),
                (
                    "set_by",
                    models.ForeignKey(
                        editable=False,
                        help_text="What this person may see goes out.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "connectors",
                "ordering": ("feed", "name"),
                "constraints": [models.UniqueConstraint(fields=("feed", "name"), name="connector_name_in_feed")],
            },
        ),
        migrations.CreateModel(
            name="LogSegment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("first_seq", models.BigIntegerField()),
                ("rows", models.BigIntegerField()),
                ("max_t", models.BigIntegerField(help_text="The greatest time of all rows of the log up to its last.")),
                ("file", models.CharField(max_length=300)),
                ("crc", models.BigIntegerField(null=True)),
                ("ordered_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("gone_at", models.DateTimeField(help_text="When another took its place; its file stays for an hour.", null=True)),
                ("feed", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="feeds.feed")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(condition=models.Q(("gone_at", None)), fields=("feed", "first_seq"), name="one_segment_at_a_place")
                ],
            },
        ),
    ]
