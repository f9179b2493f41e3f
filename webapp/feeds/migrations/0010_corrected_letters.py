from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("feeds", "0009_answers_out")]

    operations = [migrations.RenameField(model_name="deadletter", old_name="mended", new_name="corrected")]
