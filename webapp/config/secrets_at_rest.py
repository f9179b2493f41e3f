"""Secrets in the database are encrypted with keys that are not in it: a copy of the database, or a backup, opens nothing.

VEDETTE_SECRETS_KEYS lists the keys: the first encrypts, all decrypt. To change the key, put a new one first, run `manage.py secrets_rotate`, and
take the old one out.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models

MAKE_A_KEY = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"


class KeyDoesNotFit(ImproperlyConfigured):
    """What is stored was encrypted with a key that is not given."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"VEDETTE_SECRETS_KEYS does not fit: {what} cannot be decrypted. Add the key that it was encrypted with behind the present one, "
            "separated by a comma."
        )


def seal(text: str) -> str:
    """`text` encrypted with the first key. Empty text stays empty."""
    return _keys().encrypt(text.encode()).decode("ascii") if text else ""


def unseal(sealed: str) -> str:
    """What was sealed. Raises KeyDoesNotFit."""
    try:
        return _keys().decrypt(sealed.encode()).decode() if sealed else ""
    except InvalidToken as error:
        raise KeyDoesNotFit("a secret") from error


def reseal(sealed: str) -> str:
    """The same secret encrypted with the first key. Raises KeyDoesNotFit."""
    return seal(unseal(sealed))


def _keys() -> MultiFernet:
    return _made(tuple(settings.SECRETS_KEYS))


@lru_cache(maxsize=4)
def _made(keys: tuple[str, ...]) -> MultiFernet:
    if not keys:
        raise ImproperlyConfigured(f"VEDETTE_SECRETS_KEYS is not set: give it a key, made by {MAKE_A_KEY}")
    return MultiFernet([_key(number, text) for number, text in enumerate(keys, 1)])


def _key(number: int, text: str) -> Fernet:
    try:
        return Fernet(base64.urlsafe_b64encode(base64.urlsafe_b64decode(text.rstrip("=") + "=")))
    except (ValueError, binascii.Error) as error:
        raise ImproperlyConfigured(f"VEDETTE_SECRETS_KEYS: key {number} is not 32 bytes in URL-safe base64. Make one with {MAKE_A_KEY}") from error


class Sealed(models.Field):  # type: ignore[type-arg]
    """A column that holds its text encrypted. It cannot be searched: the same text is encrypted differently each time."""

    def db_type(self, connection: Any) -> str:
        return "text"

    def get_prep_value(self, value: Any) -> Any:
        return value if value is None else seal(str(value))

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> str | None:
        return value if value is None else unseal(value)


class SealedCharField(Sealed, models.CharField):  # type: ignore[type-arg]
    """A line of text."""


class SealedURLField(Sealed, models.URLField):  # type: ignore[type-arg]
    """An address: those of many receivers hold their password."""


def sealed_columns() -> Iterator[tuple[type[models.Model], list[str]]]:
    """Each model that has encrypted columns, with their names."""
    for model in apps.get_models():
        names = [str(field.column) for field in model._meta.concrete_fields if isinstance(field, Sealed)]
        if names:
            yield model, names
