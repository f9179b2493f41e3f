"""Quotas, languages and units; tokens that may only send to one feed."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("accounts", "0003_quotas_and_feed_tokens"),
        ("accounts", "0004_own_quotas"),
        ("accounts", "0005_user_units"),
        ("accounts", "0006_user_language"),
    ]

    dependencies = [
        ("accounts", "0002_invitations"),
        ("feeds", "0004_quotas_and_feed_tokens"),
    ]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="feed",
            field=models.ForeignKey(
                blank=True,
                help_text="The only one it may send to.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="feeds.feed",
            ),
        ),
        migrations.AddField(
            model_name="team",
            name="quotas",
            field=models.JSONField(blank=True, default=dict, help_text="Those that differ from the server's, by name."),
        ),
        migrations.AddField(
            model_name="user",
            name="language",
            field=models.CharField(
                blank=True,
                choices=[("en-gb", "English"), ("de", "Deutsch")],
                default="",
                help_text="Of pages and mails; empty: as the browser asks for.",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="quotas",
            field=models.JSONField(blank=True, default=dict, help_text="Those that differ from the server's, by name."),
        ),
        migrations.AddField(
            model_name="user",
            name="units",
            field=models.CharField(
                choices=[("metric", "Metres, kilometres an hour"), ("nautical", "Nautical miles, knots"), ("imperial", "Feet, miles an hour")],
                default="metric",
                help_text="Units that distances and speeds are shown in.",
                max_length=10,
            ),
        ),
    ]
