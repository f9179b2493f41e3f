"""Titles of feeds follow the rule of names: no control characters and no direction marks."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("feeds", "0012_no_direction_marks"),
    ]

    operations = [
        migrations.AlterField(
            model_name="feed",
            name="title",
            field=models.CharField(
                max_length=100,
                validators=[
                    django.core.validators.RegexValidator(
                        "^[^\\x00-\\x1f\\x7f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]+\\Z",
                        "No control characters, nor invisible marks that change the direction of writing (such as U+202E).",
                    )
                ],
            ),
        ),
    ]
