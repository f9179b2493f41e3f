from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0006_user_language")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="browser_language",
            field=models.CharField(
                blank=True,
                default="",
                editable=False,
                help_text="In which the user last opened a page: of messages, without a choice.",
                max_length=10,
            ),
        ),
    ]
