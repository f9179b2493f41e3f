import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("alerts", "0006_mutes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Feedback",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "verdict",
                    models.CharField(choices=[("right", "Right"), ("false", "False alarm"), ("not_useful", "Right, but not useful")], max_length=10),
                ),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        max_length=500,
                        validators=[django.core.validators.RegexValidator("^[^\\x00-\\x1f\\x7f]+\\Z", "No control characters.")],
                    ),
                ),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("alert", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="feedback", to="alerts.alert")),
                ("author", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL)),
            ],
            options={
                "verbose_name_plural": "feedback",
                "ordering": ("id",),
                "constraints": [models.UniqueConstraint(fields=("alert", "author"), name="one_verdict_of_a_person")],
            },
        ),
    ]
