"""`manage.py migrate`: Django's, run as the owner of the database; then the
application's role gets its rights."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import ProgrammingError, connections

from webapp.config.database_roles import as_owner, grant
from webapp.config.rotation import check_keys


class Command(migrate.Command):
    """Changes the schema under DATABASE_OWNER_URL where it is given."""

    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        with as_owner(connection):
            try:
                super().handle(*args, **options)
            except ProgrammingError as error:
                if getattr(error.__cause__, "pgcode", None) != INSUFFICIENT_PRIVILEGE:
                    raise
                raise CommandError(
                    f"{str(error).strip()}. Set DATABASE_OWNER_URL to the database's owner (docs/settings.md, Database roles)."
                ) from error
            grant(connection)
            if not any(options[name] for name in ("app_label", "plan", "check_unapplied")):
                check_keys()


INSUFFICIENT_PRIVILEGE = "42501"
