from django.db import migrations, models

import webapp.config.secrets_at_rest


class Migration(migrations.Migration):
    dependencies = [
        ("alerts", "0007_feedback"),
    ]

    operations = [
        migrations.AddField(
            model_name="channel",
            name="kind",
            field=models.CharField(choices=[("webhook", "Webhook"), ("mail", "E-mail")], default="webhook", max_length=10),
        ),
        migrations.AddField(
            model_name="channel",
            name="recipient",
            field=models.EmailField(blank=True, max_length=254),
        ),
        migrations.AlterField(
            model_name="channel",
            name="url",
            field=webapp.config.secrets_at_rest.EncryptedURLField(blank=True, max_length=500),
        ),
    ]
