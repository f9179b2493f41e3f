from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_quotas_and_feed_tokens")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="quotas",
            field=models.JSONField(blank=True, default=dict, help_text="Those that differ from the server's, by name."),
        ),
        migrations.AddField(
            model_name="team",
            name="quotas",
            field=models.JSONField(blank=True, default=dict, help_text="Those that differ from the server's, by name."),
        ),
    ]
