from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("alerts", "0020_no_direction_marks")]

    operations = [
        migrations.AlterField(
            model_name="channel",
            name="not_before",
            field=models.DateTimeField(editable=False, help_text="Until then nothing is sent: the receiver asked for it, or fails.", null=True),
        ),
    ]
