"""When the job left a version of a query."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("queries", "0002_querystop")]
    operations = [
        migrations.AddField("queryversion", "left_at", models.BigIntegerField(null=True)),
        migrations.AddField("queryversion", "left_seq", models.BigIntegerField(null=True)),
    ]
