"""Secrets in the database are useless without the keys; keys can be changed; a key that does not
fit is reported before anything starts."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection

from webapp.config.rotation import check_keys, secrets_rotate
from webapp.config.secrets_at_rest import KeyDoesNotFit, decrypt, encrypt
from webapp.platform.folders import ROOT
from webapp.platform.postgres import with_database

pytestmark = [pytest.mark.services, pytest.mark.django_db]
OLD, NEW = "b2xkIG9sZCBvbGQgb2xkIG9sZCBvbGQgb2xkIG9sZCE=", "bmV3IG5ldyBuZXcgbmV3IG5ldyBuZXcgbmV3IG5ldyE"


@pytest.fixture
def channel(people: SimpleNamespace, settings: Any) -> Any:
    from webapp.alerts.deliveries import channel_create, channel_rotate

    settings.SECRETS_KEYS = [OLD]
    made = channel_create(owner=people.owner, name="desk", url="https://hooks.example.org/T0/B0/password")
    channel_rotate(channel=made)
    made.refresh_from_db()
    return made


@pytest.fixture
def authenticator(people: SimpleNamespace, settings: Any) -> Any:
    from allauth.mfa.totp.internal.auth import TOTP

    settings.SECRETS_KEYS = [OLD]
    return TOTP.activate(people.owner, "JBSWY3DPEHPK3PXP").instance


def stored() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT url, secret, old_secret FROM alerts_channel")
        return dict(zip(("url", "secret", "old_secret"), cursor.fetchone(), strict=True))


def test_the_database_holds_no_readable_secret(channel: Any, authenticator: Any) -> None:
    from webapp.alerts.models import Channel

    row = stored()
    for name, value in row.items():
        clear = getattr(channel, name)
        assert clear and clear not in value and value.startswith("gcm1:"), name
    assert "hooks" not in str(row)
    with connection.cursor() as cursor:
        cursor.execute("SELECT data FROM mfa_authenticator")
        factors = str(cursor.fetchall())
    assert "gcm1:" in factors and "JBSWY3DPEHPK3PXP" not in factors
    assert Channel.objects.get().url == "https://hooks.example.org/T0/B0/password"


def test_a_channel_still_signs_and_shows_its_address(channel: Any, client_of: Any) -> None:
    from webapp.alerts.transports.webhook import secrets_at

    now = channel.old_secret_until.replace(year=2000)
    assert secrets_at(channel, now) == [channel.secret, channel.old_secret] and channel.secret != channel.old_secret
    assert client_of(channel.owner).get(f"/api/v1/channels/{channel.pk}/").json()["url"] == channel.url


def test_a_rotation_to_a_new_key_makes_the_old_one_unnecessary(channel: Any, authenticator: Any, settings: Any) -> None:
    from webapp.alerts.models import Channel
    from webapp.audit.models import Entry

    before, clear = stored(), (channel.url, channel.secret, channel.old_secret)
    settings.SECRETS_KEYS = [NEW, OLD]
    call_command("secrets_rotate")
    settings.SECRETS_KEYS = [NEW]
    check_keys()
    found = Channel.objects.get()
    assert (found.url, found.secret, found.old_secret) == clear
    assert all(stored()[name] != before[name] for name in before)
    authenticator.refresh_from_db()
    assert decrypt(authenticator.data["secret"]) == "JBSWY3DPEHPK3PXP"
    entry = Entry.objects.get(action="secrets.rotate")
    assert entry.detail["rows"] >= 2 and entry.means == "command"


def test_a_rotation_rewrites_values_of_an_older_cipher(channel: Any, authenticator: Any, settings: Any) -> None:
    from cryptography.fernet import Fernet

    from webapp.alerts.models import Channel

    old = Fernet(OLD).encrypt(channel.url.encode()).decode()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE alerts_channel SET url = %s", [old])
    check_keys()
    assert Channel.objects.get().url == channel.url
    call_command("secrets_rotate")
    assert stored()["url"].startswith("gcm1:") and Channel.objects.get().url == channel.url


def test_altered_values_and_values_of_another_key_are_rejected(settings: Any) -> None:
    """AES-256-GCM detects it: 11.3.2 of OWASP ASVS 5."""
    settings.SECRETS_KEYS = [OLD]
    encrypted = encrypt("a secret of a channel")
    assert len(encrypted) > 5 + (12 + 16 + 21) * 4 / 3 - 1, "nonce, text and tag"
    for place in (6, len(encrypted) // 2, len(encrypted) - 4):
        with pytest.raises(KeyDoesNotFit):
            decrypt(encrypted[:place] + ("A" if encrypted[place] != "A" else "B") + encrypted[place + 1 :])
    for broken in ("gcm1:", "gcm1:AAAA", "gcm1:ö", encrypted.removeprefix("gcm1:"), "plain"):
        with pytest.raises(KeyDoesNotFit):
            decrypt(broken)


def test_the_first_cipher_encrypts_new_values(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from webapp.config import algorithms, secrets_at_rest

    settings.SECRETS_KEYS = [OLD]
    before = encrypt("kept")
    monkeypatch.setattr(secrets_at_rest, "CIPHERS", algorithms.CIPHERS[::-1])
    assert encrypt("kept").startswith("gAAAA") and decrypt(before) == "kept"


def test_a_rotation_without_the_old_key_changes_nothing(channel: Any, settings: Any) -> None:
    before = stored()
    settings.SECRETS_KEYS = [NEW]
    with pytest.raises(CommandError, match="VEDETTE_SECRETS_KEYS does not fit: channel"):
        call_command("secrets_rotate")
    assert stored() == before
    settings.SECRETS_KEYS = [OLD]
    assert secrets_rotate() >= 1


@pytest.mark.parametrize(("keys", "message"), [([], "is not set"), (["short"], "key 1 is not 32 bytes"), ([NEW, "ö"], "key 2 is not 32 bytes")])
def test_invalid_keys_are_reported(settings: Any, keys: list[str], message: str) -> None:
    settings.SECRETS_KEYS = keys
    with pytest.raises(ImproperlyConfigured, match=message):
        check_keys()


def test_a_generated_key_works(settings: Any) -> None:
    settings.SECRETS_KEYS = [secrets.token_urlsafe(32)]
    assert decrypt(encrypt("grüße")) == "grüße" and encrypt("x") != encrypt("x") and encrypt("") == ""


def test_the_migration_encrypts_values_stored_in_clear(people: SimpleNamespace) -> None:
    from webapp.alerts.deliveries import channel_create
    from webapp.alerts.models import Channel

    migration = import_module("webapp.alerts.migrations.0003_secrets_at_rest")
    made = channel_create(owner=people.owner, name="desk", url="https://hooks.example.org/x")
    migration.decrypt(None, connection.schema_editor())
    assert stored()["url"] == "https://hooks.example.org/x" and stored()["secret"] == made.secret
    migration.encrypt(None, connection.schema_editor())
    assert stored()["url"].startswith("gcm1:")
    assert Channel.objects.get().secret == made.secret


def test_the_server_refuses_to_start_with_a_key_that_does_not_fit(transactional_db: None, channel: Any) -> None:
    url = with_database(os.environ["DATABASE_URL"], connection.settings_dict["NAME"])

    def start(**more: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "DATABASE_URL": url, **more}
        return subprocess.run(
            [sys.executable, "-c", "import webapp.config.asgi"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )

    refused = start(VEDETTE_SECRETS_KEYS=NEW)
    assert refused.returncode != 0
    assert f"VEDETTE_SECRETS_KEYS does not fit: url of channel {channel.pk} cannot be decrypted. Add the key" in refused.stderr
    assert start(VEDETTE_SECRETS_KEYS=f"{NEW},{OLD}").returncode == 0


@pytest.mark.parametrize("queue", ["celery", "deliveries"])
def test_a_worker_refuses_to_start_with_a_key_that_does_not_fit(transactional_db: None, channel: Any, queue: str) -> None:
    url = with_database(os.environ["DATABASE_URL"], connection.settings_dict["NAME"])
    environment = {**os.environ, "DATABASE_URL": url, "REDIS_URL": "", "VEDETTE_SECRETS_KEYS": NEW}
    worker = [sys.executable, "-m", "celery", "-A", "webapp.config", "worker", "--pool", "solo", "--queues", queue]
    refused = subprocess.run(worker, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode != 0
    assert f"VEDETTE_SECRETS_KEYS does not fit: url of channel {channel.pk} cannot be decrypted. Add the key" in refused.stderr


def test_reading_a_value_of_another_key_names_the_cause(channel: Any, settings: Any) -> None:
    from webapp.alerts.models import Channel

    settings.SECRETS_KEYS = [NEW]
    with pytest.raises(KeyDoesNotFit):
        Channel.objects.get()
