import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_own_quotas"),
        ("alerts", "0004_resolution_changed"),
        ("feeds", "0004_quotas_and_feed_tokens"),
        ("queries", "0004_query_derives_from"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RenameModel("AlertComment", "AlertStep"),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("public", models.BooleanField(default=False, help_text="Everyone who is logged in may read it.")),
                (
                    "name",
                    models.CharField(
                        max_length=100, validators=[django.core.validators.RegexValidator("^[^\\x00-\\x1f\\x7f]+\\Z", "No control characters.")]
                    ),
                ),
                (
                    "parameters",
                    models.CharField(
                        blank=True,
                        help_text="As they stand in the address: severity=high&assignee=me",
                        max_length=2000,
                        validators=[django.core.validators.RegexValidator("^[^\\x00-\\x1f\\x7f]+\\Z", "No control characters.")],
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ("name", "id"),
            },
        ),
        migrations.AddField(
            model_name="alert",
            name="assignee",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name="alert",
            name="over_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="alertstep",
            name="assignee",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name="alert",
            name="revision",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="alertstep",
            name="action",
            field=models.CharField(
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
        migrations.AlterField(
            model_name="alert",
            name="state",
            field=models.CharField(
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
        migrations.AlterField(
            model_name="alertstep",
            name="alert",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="steps", to="alerts.alert"),
        ),
        migrations.AlterField(
            model_name="alertstep",
            name="text",
            field=models.TextField(blank=True, max_length=4000),
        ),
        migrations.AddField(
            model_name="alert",
            name="rank",
            field=models.GeneratedField(
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
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(condition=models.Q(("state", "resolved"), _negated=True), fields=["id"], name="desk_by_opening"),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(condition=models.Q(("state", "resolved"), _negated=True), fields=["rank", "id"], name="desk_by_severity"),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(condition=models.Q(("state", "resolved"), _negated=True), fields=["start", "id"], name="desk_by_event_time"),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(condition=models.Q(("state", "resolved"), _negated=True), fields=["query", "state", "severity"], name="desk_counts"),
        ),
        migrations.AddField(
            model_name="savedview",
            name="owner",
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name="savedview",
            name="team",
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="accounts.team"),
        ),
    ]
