"""How far a row may be ahead of a feed's clock; feeds that are there get what new ones of their kind get."""

import django.core.validators
from django.db import migrations, models


def give_defaults(apps, schema_editor):
    from webapp.feeds.admission import default_ahead

    for feed in apps.get_model("feeds", "Feed").objects.all():
        feed.ahead = default_ahead(time_unit=feed.time, wall_clock=feed.wall_clock, lateness=feed.lateness)
        feed.save(update_fields=["ahead"])


class Migration(migrations.Migration):
    dependencies = [("feeds", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="feed",
            name="ahead",
            field=models.BigIntegerField(
                blank=True,
                help_text="How far a row may be ahead of the clock, in the unit of t; null: as far as it likes (decision 17).",
                null=True,
                validators=[django.core.validators.MinValueValidator(0)],
            ),
        ),
        migrations.AddField(model_name="ingestreceipt", name="late", field=models.BigIntegerField(default=0)),
        migrations.RunPython(give_defaults, migrations.RunPython.noop),
    ]
