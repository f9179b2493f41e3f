"""Jobs, their events and measures."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("jobs", "0001_initial"),
        ("jobs", "0002_query_stopped"),
        ("jobs", "0003_events_of_feeds"),
        ("jobs", "0004_jobs_of_teams"),
        ("jobs", "0005_measures"),
        ("jobs", "0006_batches_have_no_record"),
        ("jobs", "0007_events_of_files"),
        ("jobs", "0008_plain_texts"),
        ("jobs", "0009_failing_connectors"),
    ]

    initial = True

    dependencies = [
        ("accounts", "0006_user_language"),
        ("feeds", "0012_no_direction_marks"),
    ]

    operations = [
        migrations.CreateModel(
            name="Job",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=63, unique=True)),
                ("desired_state", models.CharField(choices=[("running", "Running"), ("stopped", "Stopped")], default="running", max_length=8)),
                (
                    "observed_state",
                    models.CharField(
                        choices=[
                            ("starting", "Starting"),
                            ("running", "Running"),
                            ("stopping", "Stopping"),
                            ("stopped", "Stopped"),
                            ("backoff", "Waiting to start again"),
                            ("crash_loop", "Keeps failing"),
                        ],
                        default="stopped",
                        editable=False,
                        max_length=10,
                    ),
                ),
                ("epoch", models.BigIntegerField(default=0, editable=False)),
                ("token", models.CharField(blank=True, editable=False, max_length=40)),
                ("lease_owner", models.CharField(blank=True, editable=False, max_length=100)),
                ("lease_until", models.DateTimeField(editable=False, null=True)),
                ("host", models.CharField(blank=True, editable=False, max_length=253)),
                ("pid", models.IntegerField(editable=False, null=True)),
                ("pid_started", models.FloatField(editable=False, help_text="Start of the process, seconds since the epoch.", null=True)),
                ("pgid", models.IntegerField(editable=False, null=True)),
                ("started_at", models.DateTimeField(editable=False, null=True)),
                ("heartbeat", models.DateTimeField(editable=False, null=True)),
                ("restarts", models.PositiveIntegerField(default=0, editable=False)),
                ("start_after", models.DateTimeField(editable=False, help_text="Back-off: not started again before.", null=True)),
                (
                    "suspect_since",
                    models.DateTimeField(editable=False, help_text="Since when it should have ended, or has given no sign of life.", null=True),
                ),
                ("last_error", models.TextField(blank=True, editable=False)),
                (
                    "failed_at",
                    models.JSONField(default=list, editable=False, help_text="When starts failed or crashed lately, in seconds since the epoch."),
                ),
                (
                    "team",
                    models.ForeignKey(
                        blank=True,
                        help_text="Its feeds are this team's; none: anybody's.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="FeedHead",
            fields=[
                (
                    "feed",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name="head", serialize=False, to="feeds.feed"
                    ),
                ),
                ("epoch", models.BigIntegerField(default=0)),
                (
                    "commits",
                    models.BigIntegerField(default=0, help_text="Transactions so far: tells a job whether one whose answer was lost took place."),
                ),
                ("checkpoint", models.PositiveIntegerField(default=0)),
                ("last_batch", models.BigIntegerField(default=-1)),
                ("last_seq", models.BigIntegerField(default=-1)),
                ("outbox_seq", models.BigIntegerField(default=0)),
                ("query_version", models.BigIntegerField(default=0)),
                ("queries", models.JSONField(default=list)),
                ("snapshot", models.CharField(blank=True, max_length=100)),
                ("snapshot_seq", models.BigIntegerField(default=-1)),
                ("watermark", models.BigIntegerField(null=True)),
                ("max_t", models.BigIntegerField(null=True)),
                ("processed", models.BigIntegerField(default=0)),
                ("duplicates", models.BigIntegerField(default=0)),
                ("late", models.BigIntegerField(default=0)),
                ("batch_ms", models.FloatField(null=True)),
                ("rows_per_s", models.FloatField(null=True)),
                (
                    "catching_up",
                    models.JSONField(default=dict, help_text='{"queries": [id, ...], "done": seq, "to": seq} while new queries read the history.'),
                ),
                ("updated_at", models.DateTimeField(null=True)),
                ("stalled_at", models.DateTimeField(help_text="Since when it has been stalled while rows wait; null: it is not.", null=True)),
                ("job", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="heads", to="jobs.job")),
            ],
        ),
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
        ),
        migrations.CreateModel(
            name="JobEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("started", "Started"),
                            ("ready", "Processing"),
                            ("adopted", "Adopted"),
                            ("stopped", "Stopped"),
                            ("crashed", "Crashed"),
                            ("killed", "Ended by force"),
                            ("orphan", "Leftover process ended"),
                            ("crash_loop", "Keeps failing"),
                            ("rebuilt", "State rebuilt from the log"),
                            ("requested", "Requested by a user"),
                            ("query", "Query stopped"),
                            ("damaged", "Log damaged"),
                            ("repaired", "Log repaired"),
                            ("stalled", "Stalled"),
                            ("resumed", "Resumed"),
                            ("unreadable", "File not read"),
                            ("connector_failed", "Connector keeps failing"),
                            ("connector_runs", "Connector runs again"),
                        ],
                        max_length=20,
                    ),
                ),
                ("text", models.TextField()),
                (
                    "feed",
                    models.ForeignKey(
                        help_text="The one feed that it is about.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="feeds.feed",
                    ),
                ),
                ("job", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="events", to="jobs.job")),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [models.Index(fields=["job", "-id"], name="events_of_job"), models.Index(fields=["feed", "-id"], name="events_of_feed")],
            },
        ),
    ]
