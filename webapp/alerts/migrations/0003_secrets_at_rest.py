from typing import Any

from django.db import migrations

from webapp.config import secrets_at_rest
from webapp.config.secrets_at_rest import EncryptedCharField, EncryptedURLField


def _each(schema_editor: Any, how: Any) -> None:
    """Past the models: their columns read what is encrypted already."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT id, url, secret, old_secret FROM alerts_channel FOR UPDATE")
        for pk, *texts in cursor.fetchall():
            cursor.execute("UPDATE alerts_channel SET url = %s, secret = %s, old_secret = %s WHERE id = %s", [*map(how, texts), pk])


def encrypt(apps: Any, schema_editor: Any) -> None:
    _each(schema_editor, secrets_at_rest.encrypt)


def decrypt(apps: Any, schema_editor: Any) -> None:
    _each(schema_editor, secrets_at_rest.decrypt)


class Migration(migrations.Migration):
    dependencies = [("alerts", "0002_channel_all_queries")]

    operations = [
        migrations.AlterField("channel", "url", EncryptedURLField(max_length=500)),
        migrations.AlterField("channel", "secret", EncryptedCharField(max_length=100, editable=False)),
        migrations.AlterField("channel", "old_secret", EncryptedCharField(max_length=100, blank=True, editable=False)),
        migrations.RunPython(encrypt, decrypt),
    ]
