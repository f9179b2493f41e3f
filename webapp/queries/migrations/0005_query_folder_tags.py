from __future__ import annotations

import django.contrib.postgres.fields
import django.core.validators
from django.db import migrations, models

NO_CONTROLS = django.core.validators.RegexValidator("^[^\\x00-\\x1f\\x7f]+\\Z", "No control characters.")


class Migration(migrations.Migration):
    dependencies = [("queries", "0004_query_derives_from")]

    operations = [
        migrations.AddField(
            "query",
            "folder",
            models.CharField(
                blank=True, default="", help_text="Where lists show it, such as Harbour/Night.", max_length=200, validators=[NO_CONTROLS]
            ),
        ),
        migrations.AddField(
            "query",
            "tags",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=50, validators=[NO_CONTROLS]), blank=True, default=list, size=None
            ),
        ),
    ]
