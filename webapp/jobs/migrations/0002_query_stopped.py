from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial")]

    operations = [
        migrations.AlterField(
            model_name="jobevent",
            name="kind",
            field=models.CharField(
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
                    ("requested", "Asked for by a user"),
                    ("query", "Query stopped"),
                ],
                max_length=10,
            ),
        ),
    ]
