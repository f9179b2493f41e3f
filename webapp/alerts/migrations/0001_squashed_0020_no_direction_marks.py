"""Alerts, channels, rules, shifts and mutes."""

import datetime
import uuid

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import webapp.config.secrets_at_rest


class Migration(migrations.Migration):
    replaces = [
        ("alerts", "0001_initial"),
        ("alerts", "0002_channel_all_queries"),
        ("alerts", "0003_secrets_at_rest"),
        ("alerts", "0004_resolution_changed"),
        ("alerts", "0005_steps_and_desk"),
        ("alerts", "0006_mutes"),
        ("alerts", "0007_feedback"),
        ("alerts", "0008_channel_kinds"),
        ("alerts", "0009_channel_not_before"),
        ("alerts", "0010_routing_rules"),
        ("alerts", "0011_pace"),
        ("alerts", "0012_shifts"),
        ("alerts", "0013_mqtt_channels"),
        ("alerts", "0014_apprise_channels"),
        ("alerts", "0015_browsers"),
        ("alerts", "0016_shift_warnings"),
        ("alerts", "0017_desk_counts_with_mutes"),
        ("alerts", "0018_plain_texts"),
        ("alerts", "0019_turns_by_hand"),
        ("alerts", "0020_no_direction_marks"),
    ]

    initial = True

    dependencies = [
        ("accounts", "0006_user_language"),
        ("feeds", "0012_no_direction_marks"),
        ("queries", "0007_no_direction_marks"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Alert",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("query_version", models.PositiveIntegerField(default=1)),
                ("detection_key", models.BinaryField(max_length=16)),
                ("kind", models.CharField(max_length=100)),
                ("entities", django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ("value", models.TextField(null=True)),
                ("start", models.BigIntegerField()),
                ("end", models.BigIntegerField(null=True)),
                ("severity", models.CharField(choices=[("info", "Info"), ("low", "Low"), ("high", "High"), ("critical", "Critical")], max_length=10)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("new", "New"),
                            ("seen", "Seen"),
                            ("acknowledged", "Acknowledged"),
                            ("assigned", "Assigned"),
                            ("reopened", "Reopened"),
                            ("resolved", "Resolved"),
                        ],
                        default="new",
                        max_length=12,
                    ),
                ),
                ("opened_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("resolved_at", models.DateTimeField(null=True)),
                (
                    "resolution",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("person", "By a person"),
                            ("ended", "The interval ended"),
                            ("withdrawn", "The answer was withdrawn"),
                            ("removed", "The query was removed"),
                            ("changed", "The query was edited or switched off"),
                        ],
                        max_length=10,
                    ),
                ),
                ("closing_key", models.BinaryField(max_length=16, null=True)),
                ("planned_at", models.DateTimeField(help_text="When its messages were planned.", null=True)),
                ("over_at", models.DateTimeField(null=True)),
                ("revision", models.PositiveIntegerField(default=0)),
                (
                    "rank",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Case(
                            models.When(severity="info", then=models.Value(0)),
                            models.When(severity="low", then=models.Value(1)),
                            models.When(severity="high", then=models.Value(2)),
                            models.When(severity="critical", then=models.Value(3)),
                            default=models.Value(0),
                        ),
                        output_field=models.SmallIntegerField(),
                    ),
                ),
                (
                    "acknowledged_by",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
                (
                    "assignee",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
                ("feed", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="alerts", to="feeds.feed")),
                ("query", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="alerts", to="queries.query")),
                (
                    "resolved_by",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [
                    models.Index(fields=["query", "-id"], name="alerts_of_query"),
                    models.Index(condition=models.Q(("state", "resolved"), _negated=True), fields=["query", "entities"], name="unresolved_alerts"),
                    models.Index(condition=models.Q(("planned_at", None)), fields=["id"], name="alerts_to_plan"),
                    models.Index(condition=models.Q(("state", "resolved"), _negated=True), fields=["id"], name="desk_by_opening"),
                    models.Index(condition=models.Q(("state", "resolved"), _negated=True), fields=["rank", "id"], name="desk_by_severity"),
                    models.Index(condition=models.Q(("state", "resolved"), _negated=True), fields=["start", "id"], name="desk_by_event_time"),
                ],
                "constraints": [models.UniqueConstraint(fields=("feed", "detection_key"), name="one_alert_for_a_detection")],
            },
        ),
        migrations.CreateModel(
            name="AlertStep",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.TextField(blank=True, max_length=4000)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("seen", "Seen"),
                            ("acknowledged", "Acknowledged"),
                            ("assigned", "Assigned"),
                            ("resolved", "Resolved"),
                            ("reopened", "Reopened"),
                            ("commented", "Commented"),
                            ("ended", "Ended by itself"),
                            ("withdrawn", "Withdrawn"),
                            ("changed", "Its query was edited or switched off"),
                            ("removed", "Its query was removed"),
                            ("resumed", "Holds again"),
                        ],
                        default="commented",
                        max_length=12,
                    ),
                ),
                ("alert", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="steps", to="alerts.alert")),
                (
                    "assignee",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
                ("author", models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL)),
            ],
            options={
                "ordering": ("id",),
            },
        ),
        migrations.CreateModel(
            name="Channel",
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
                ("url", webapp.config.secrets_at_rest.EncryptedCharField(blank=True, max_length=1000)),
                ("secret", webapp.config.secrets_at_rest.EncryptedCharField(editable=False, max_length=100)),
                ("old_secret", webapp.config.secrets_at_rest.EncryptedCharField(blank=True, editable=False, max_length=100)),
                ("old_secret_until", models.DateTimeField(editable=False, null=True)),
                ("enabled", models.BooleanField(default=True)),
                ("disabled_reason", models.CharField(blank=True, max_length=200)),
                (
                    "min_severity",
                    models.CharField(
                        choices=[("info", "Info"), ("low", "Low"), ("high", "High"), ("critical", "Critical")], default="info", max_length=10
                    ),
                ),
                ("per_minute", models.PositiveIntegerField(default=30)),
                ("failures", models.PositiveIntegerField(default=0, editable=False, help_text="Failed attempts since the last success.")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("all_queries", models.BooleanField(default=True, help_text="Also those registered later; else the chosen ones only.")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("webhook", "Webhook"),
                            ("mail", "E-mail"),
                            ("mqtt", "MQTT topic"),
                            ("apprise", "Chat, pager or SMS (Apprise)"),
                            ("push", "A browser (web push)"),
                            ("kafka", "Kafka topic"),
                        ],
                        default="webhook",
                        max_length=10,
                    ),
                ),
                ("recipient", models.EmailField(blank=True, max_length=254)),
                ("not_before", models.DateTimeField(editable=False, help_text="Until then the receiver asked to be left alone.", null=True)),
                (
                    "critical_passes",
                    models.BooleanField(default=True, help_text="Critical alerts wait for neither the end of quiet hours nor a digest."),
                ),
                ("digest", models.CharField(blank=True, choices=[("hourly", "Every hour"), ("daily", "Every day")], default="", max_length=10)),
                ("digest_at", models.TimeField(default=datetime.time(8, 0), help_text="Of a daily digest.")),
                (
                    "group_by",
                    models.CharField(
                        blank=True, choices=[("query", "By query"), ("entity", "By entity"), ("region", "By region")], default="", max_length=10
                    ),
                ),
                (
                    "group_minutes",
                    models.PositiveIntegerField(
                        default=30, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1440)]
                    ),
                ),
                ("quiet_from", models.TimeField(blank=True, null=True)),
                ("quiet_until", models.TimeField(blank=True, null=True)),
                ("zone", models.CharField(default="UTC", max_length=60)),
                (
                    "browser",
                    models.CharField(editable=False, help_text="SHA-256 of the subscription's address.", max_length=64, null=True, unique=True),
                ),
                ("browser_keys", webapp.config.secrets_at_rest.EncryptedCharField(blank=True, max_length=200)),
                ("owner", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("queries", models.ManyToManyField(blank=True, related_name="channels", to="queries.query")),
                (
                    "team",
                    models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="accounts.team"),
                ),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("webhook_id", models.UUIDField(default=uuid.uuid4, unique=True)),
                ("test", models.BooleanField(default=False)),
                ("body", models.TextField(help_text="The message, the same at every attempt.")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("sent_at", models.DateTimeField(null=True)),
                ("failed_at", models.DateTimeField(help_text="When it was given up.", null=True)),
                ("status_code", models.PositiveIntegerField(null=True)),
                ("error", models.CharField(blank=True, max_length=300)),
                ("channel", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="deliveries", to="alerts.channel")),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "ordering": ("-id",),
                "indexes": [models.Index(condition=models.Q(("failed_at", None), ("sent_at", None)), fields=["next_at"], name="deliveries_due")],
            },
        ),
        migrations.CreateModel(
            name="Feedback",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "verdict",
                    models.CharField(choices=[("right", "Right"), ("false", "False alarm"), ("not_useful", "Right, but not useful")], max_length=10),
                ),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        max_length=500,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[^\\x00-\\x1f\\x7f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]+\\Z",
                                "No control characters, nor invisible marks that change the direction of writing (such as U+202E).",
                            )
                        ],
                    ),
                ),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("alert", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="feedback", to="alerts.alert")),
                ("author", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL)),
            ],
            options={
                "verbose_name_plural": "feedback",
                "ordering": ("id",),
                "constraints": [models.UniqueConstraint(fields=("alert", "author"), name="one_verdict_of_a_person")],
            },
        ),
        migrations.CreateModel(
            name="Mute",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("public", models.BooleanField(default=False, help_text="Everyone who is logged in may read it.")),
                ("entities", django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                (
                    "reason",
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
                ("window_from", models.DateTimeField()),
                ("window_until", models.DateTimeField(null=True)),
                ("begun", models.BooleanField(default=False)),
                ("rule", models.CharField(blank=True, max_length=300)),
                ("zone", models.CharField(default="UTC", max_length=60)),
                ("first_from", models.DateTimeField(null=True)),
                ("length", models.DurationField(null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("ended_at", models.DateTimeField(null=True)),
                ("feed", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="mutes", to="feeds.feed")),
                ("owner", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("query", models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="mutes", to="queries.query")),
                ("region", models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="mutes", to="feeds.region")),
                (
                    "team",
                    models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="accounts.team"),
                ),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [models.Index(condition=models.Q(("ended_at", None)), fields=["feed"], name="mutes_of_feed")],
            },
        ),
        migrations.AddField(
            model_name="alert",
            name="mute",
            field=models.ForeignKey(
                help_text="The mute that suppressed its messages.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="alerts",
                to="alerts.mute",
            ),
        ),
        migrations.CreateModel(
            name="RoutingRule",
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
                ("enabled", models.BooleanField(default=True)),
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
                (
                    "min_severity",
                    models.CharField(
                        choices=[("info", "Info"), ("low", "Low"), ("high", "High"), ("critical", "Critical")], default="info", max_length=10
                    ),
                ),
                (
                    "days",
                    django.contrib.postgres.fields.ArrayField(base_field=models.PositiveSmallIntegerField(), blank=True, default=list, size=None),
                ),
                ("from_time", models.TimeField(blank=True, null=True)),
                ("until_time", models.TimeField(blank=True, null=True)),
                ("zone", models.CharField(default="UTC", max_length=60)),
                ("after_minutes", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "critical_passes",
                    models.BooleanField(default=True, help_text="Critical alerts wait for neither the end of quiet hours nor a digest."),
                ),
                ("digest", models.CharField(blank=True, choices=[("hourly", "Every hour"), ("daily", "Every day")], default="", max_length=10)),
                ("digest_at", models.TimeField(default=datetime.time(8, 0), help_text="Of a daily digest.")),
                (
                    "group_by",
                    models.CharField(
                        blank=True, choices=[("query", "By query"), ("entity", "By entity"), ("region", "By region")], default="", max_length=10
                    ),
                ),
                (
                    "group_minutes",
                    models.PositiveIntegerField(
                        default=30, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1440)]
                    ),
                ),
                ("quiet_from", models.TimeField(blank=True, null=True)),
                ("quiet_until", models.TimeField(blank=True, null=True)),
                ("channels", models.ManyToManyField(blank=True, related_name="routing_rules", to="alerts.channel")),
                (
                    "feed",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name="routing_rules", to="feeds.feed"
                    ),
                ),
                ("owner", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("people", models.ManyToManyField(blank=True, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("queries", models.ManyToManyField(blank=True, related_name="routing_rules", to="queries.query")),
                ("regions", models.ManyToManyField(blank=True, related_name="routing_rules", to="feeds.region")),
                (
                    "team",
                    models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="accounts.team"),
                ),
                ("teams", models.ManyToManyField(blank=True, related_name="+", to="accounts.team")),
            ],
            options={
                "ordering": ("id",),
            },
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("after_minutes", models.PositiveIntegerField(default=0)),
                ("due_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("gathered", models.BooleanField(default=False)),
                ("group", models.TextField(blank=True, default="")),
                ("alert", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="notifications", to="alerts.alert")),
                ("channel", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="notifications", to="alerts.channel")),
                (
                    "delivery",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="notifications", to="alerts.delivery"),
                ),
                (
                    "rule",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="notifications", to="alerts.routingrule"),
                ),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("delivery", None)), fields=["channel", "id"], name="notifications_to_send"),
                    models.Index(
                        condition=models.Q(("group", ""), _negated=True), fields=["channel", "group", "due_at"], name="notifications_of_group"
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("alert", "channel", "after_minutes"), name="one_notification_for_a_channel")],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
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
                (
                    "parameters",
                    models.CharField(
                        blank=True,
                        help_text="The query string of the address: severity=high&assignee=me",
                        max_length=2000,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[^\\x00-\\x1f\\x7f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]+\\Z",
                                "No control characters, nor invisible marks that change the direction of writing (such as U+202E).",
                            )
                        ],
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("owner", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                (
                    "team",
                    models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="accounts.team"),
                ),
            ],
            options={
                "ordering": ("name", "id"),
            },
        ),
        migrations.CreateModel(
            name="Shift",
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
                ("zone", models.CharField(default="UTC", help_text="Of times in the calendar that have none.", max_length=60)),
                ("unknown", django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, editable=False, size=None)),
                ("known_until", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("warned", models.CharField(blank=True, editable=False, max_length=10)),
                ("owner", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                (
                    "team",
                    models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="accounts.team"),
                ),
            ],
            options={
                "ordering": ("name", "id"),
            },
        ),
        migrations.AddField(
            model_name="routingrule",
            name="shifts",
            field=models.ManyToManyField(blank=True, related_name="routing_rules", to="alerts.shift"),
        ),
        migrations.CreateModel(
            name="Turn",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("begins_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("by_hand", models.BooleanField(db_default=False, default=False)),
                ("person", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("shift", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="turns", to="alerts.shift")),
            ],
            options={
                "ordering": ("begins_at", "id"),
                "indexes": [models.Index(fields=["shift", "begins_at", "ends_at"], name="turns_of_shift")],
            },
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(
                condition=models.Q(("state", "resolved"), _negated=True), fields=["query", "state", "severity"], include=("mute",), name="desk_counts"
            ),
        ),
    ]
