"""All encrypted values in the database: read to check the keys, rewritten after a new key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection, models, transaction
from psycopg2 import sql

from webapp.config.secrets_at_rest import KeyDoesNotFit, decrypt, encrypt, encrypted_columns, reencrypt

SECOND_FACTOR = ("secret", "seed")
"""The fields of authenticator apps and recovery codes that allauth encrypts."""


def check_keys() -> None:
    """Raises KeyDoesNotFit, naming what cannot be read, unless the keys decrypt all stored
    secrets."""
    encrypt("a key is given, and is one")
    for model, columns in encrypted_columns():
        for row in _rows(model, columns):
            for name, value in zip(columns, row[1:], strict=True):
                _opened(decrypt, value or "", f"{name} of {model._meta.verbose_name} {row[0]}")
    for factor in Authenticator.objects.exclude(type=Authenticator.Type.WEBAUTHN):
        for name in SECOND_FACTOR:
            _opened(decrypt, factor.data.get(name, ""), f"the second factor {factor.pk}")


def check_keys_at_start() -> None:
    """Called first by every process that serves or sends. Raises ImproperlyConfigured.

    A process may start while the database is unavailable: it reports this itself.
    """
    if not (settings.SECRET_KEY_GIVEN or settings.DEBUG):
        raise ImproperlyConfigured("SECRET_KEY is not set: give it 50 random characters or more in the environment.")
    with suppress(OperationalError):
        check_keys()
    connection.close()


@transaction.atomic
def secrets_rotate() -> int:
    """Encrypts every secret with the first key; returns the number of rows. All or
    nothing. Raises KeyDoesNotFit."""
    return sum(_rotate_table(model, columns) for model, columns in encrypted_columns()) + _rotate_factors()


def _rotate_table(model: type[models.Model], columns: list[str]) -> int:
    count = 0
    table = sql.Identifier(model._meta.db_table)
    assignments = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in columns)
    update = sql.SQL("UPDATE {} SET {} WHERE {} = %s").format(table, assignments, sql.Identifier(str(model._meta.pk.column)))
    for row in _rows(model, columns, lock=True):
        fresh = [_opened(reencrypt, value or "", f"{model._meta.verbose_name} {row[0]}") for value in row[1:]]
        with connection.cursor() as cursor:
            cursor.execute(update, [*fresh, row[0]])
        count += 1
    return count


def _rotate_factors() -> int:
    factors = list(Authenticator.objects.select_for_update().exclude(type=Authenticator.Type.WEBAUTHN))
    for factor in factors:
        for name in SECOND_FACTOR:
            if factor.data.get(name):
                factor.data[name] = _opened(reencrypt, factor.data[name], f"the second factor {factor.pk}")
        factor.save(update_fields=["data"])
    return len(factors)


def _rows(model: type[models.Model], columns: list[str], *, lock: bool = False) -> Iterator[tuple[Any, ...]]:
    """Key and encrypted columns of each row, as they are stored."""
    names = sql.SQL(", ").join(map(sql.Identifier, [str(model._meta.pk.column), *columns]))
    text = sql.SQL("SELECT {} FROM {} {}").format(names, sql.Identifier(model._meta.db_table), sql.SQL("FOR UPDATE" if lock else ""))
    with connection.cursor() as cursor:
        cursor.execute(text)
        yield from cursor.fetchall()


def _opened(how: Callable[[str], str], encrypted: str, what: str) -> str:
    try:
        return how(encrypted)
    except KeyDoesNotFit as error:
        raise KeyDoesNotFit(what) from error
