import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("queries", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="QueryStop",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField()),
                ("reason", models.TextField()),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("query", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="stops", to="queries.query")),
            ],
            options={"ordering": ("query", "version")},
        ),
        migrations.AddConstraint(
            model_name="querystop",
            constraint=models.UniqueConstraint(fields=("query", "version"), name="stop_of_version"),
        ),
    ]
