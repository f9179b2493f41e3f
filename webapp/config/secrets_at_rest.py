"""Secrets in the database are encrypted with keys that are not in it: a copy of the database,
or a backup, opens nothing.

VEDETTE_SECRETS_KEYS lists the keys: the first encrypts, all decrypt. To change the key, put a new
one first, run `manage.py secrets_rotate`, and take the old one out. The same command encrypts the
values of an older cipher with the present one (`webapp/config/algorithms.py`).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models

from webapp.config.algorithms import CIPHERS, KEY_BYTES, WrongKey

MAKE_A_KEY = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"


class KeyDoesNotFit(ImproperlyConfigured):
    """The stored value was encrypted with a key that is not given."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"VEDETTE_SECRETS_KEYS does not fit: {what} cannot be decrypted. Add the key that it was encrypted with behind the present one, "
            "separated by a comma."
        )


def encrypt(text: str) -> str:
    """`text` encrypted with the first key and cipher. Empty text stays empty."""
    key = _keys()[0]
    return CIPHERS[0].encrypt(key, text) if text else ""


def decrypt(encrypted: str) -> str:
    """The decrypted text. Raises KeyDoesNotFit."""
    if not encrypted:
        return ""
    for key in _keys():
        for cipher in CIPHERS:
            if encrypted.startswith(cipher.mark):
                with suppress(WrongKey):
                    return cipher.decrypt(key, encrypted)
    raise KeyDoesNotFit("a secret")


def reencrypt(encrypted: str) -> str:
    """The same secret encrypted with the first key and cipher. Raises KeyDoesNotFit."""
    return encrypt(decrypt(encrypted))


def _keys() -> list[bytes]:
    return _made(tuple(settings.SECRETS_KEYS))


@lru_cache(maxsize=4)
def _made(keys: tuple[str, ...]) -> list[bytes]:
    if not keys:
        raise ImproperlyConfigured(f"VEDETTE_SECRETS_KEYS is not set: give it a key, made by {MAKE_A_KEY}")
    return [_key(number, text) for number, text in enumerate(keys, 1)]


def _key(number: int, text: str) -> bytes:
    with suppress(ValueError, binascii.Error):
        key = base64.urlsafe_b64decode(text.rstrip("=") + "=")
        if len(key) == KEY_BYTES:
            return key
    raise ImproperlyConfigured(f"VEDETTE_SECRETS_KEYS: key {number} is not {KEY_BYTES} bytes in URL-safe base64. Make one with {MAKE_A_KEY}")


class Encrypted(models.Field):  # type: ignore[type-arg]
    """A column that holds its text encrypted. It cannot be searched: the same text is
    encrypted differently each time."""

    def db_type(self, connection: Any) -> str:
        return "text"

    def get_prep_value(self, value: Any) -> Any:
        return value if value is None else encrypt(str(value))

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> str | None:
        return value if value is None else decrypt(value)


class EncryptedCharField(Encrypted, models.CharField):  # type: ignore[type-arg]
    """A line of text."""


class EncryptedURLField(Encrypted, models.URLField):  # type: ignore[type-arg]
    """An address: those of many receivers contain a password."""


def encrypted_columns() -> Iterator[tuple[type[models.Model], list[str]]]:
    """Each model that has encrypted columns, with their names."""
    for model in apps.get_models():
        names = [str(field.column) for field in model._meta.concrete_fields if isinstance(field, Encrypted)]
        if names:
            yield model, names
