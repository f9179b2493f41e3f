"""`manage.py secrets_rotate`: encrypts every secret in the database with the
first of VEDETTE_SECRETS_KEYS."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from engine.model.counts import counted
from webapp.audit.services import record
from webapp.config.rotation import secrets_rotate


class Command(BaseCommand):
    help = "Encrypts every secret in the database with the first of VEDETTE_SECRETS_KEYS; the others may then be removed."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with transaction.atomic():
                count = secrets_rotate()
                record("secrets.rotate", rows=count)
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Encrypted with the first key: {counted(count, 'row')}. Take the other keys out of VEDETTE_SECRETS_KEYS and start again.")
