import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_own_quotas"),
        ("alerts", "0005_steps_and_desk"),
        ("feeds", "0004_quotas_and_feed_tokens"),
        ("queries", "0004_query_derives_from"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Mute",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("public", models.BooleanField(default=False, help_text="Everyone who is logged in may read it.")),
                ("entities", django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                (
                    "reason",
                    models.CharField(
                        max_length=500, validators=[django.core.validators.RegexValidator("^[^\\x00-\\x1f\\x7f]+\\Z", "No control characters.")]
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
            },
        ),
        migrations.AddField(
            model_name="alert",
            name="mute",
            field=models.ForeignKey(
                help_text="By which nobody was called for it.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="alerts",
                to="alerts.mute",
            ),
        ),
        migrations.AddIndex(
            model_name="mute",
            index=models.Index(condition=models.Q(("ended_at", None)), fields=["feed"], name="mutes_of_feed"),
        ),
    ]
