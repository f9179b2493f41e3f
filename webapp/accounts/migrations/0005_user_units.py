from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_own_quotas")]

    operations = [
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
