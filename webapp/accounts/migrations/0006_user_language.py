from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_user_units")]

    operations = [
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
    ]
