"""`manage.py restore FILE`: restores a backup into an empty database and an empty folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from engine.model.counts import counted
from webapp.config.database_roles import as_owner
from webapp.feeds.logs import is_shared
from webapp.feeds.models import LogHead, LogSegment
from webapp.jobs.models import Job, ObservedState
from webapp.platform import backup
from webapp.platform.postgres import PostgresError
from webapp.supervisor.management.commands.backup import only_the_owner, places


class Command(BaseCommand):
    help = "Puts a backup into the database of DATABASE_URL and the folder VEDETTE_VAR, both of which must be empty, and migrates it."
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="a file written by `manage.py backup`")

    def handle(self, *args: Any, **options: Any) -> None:
        if is_shared():
            raise CommandError("Restore without VEDETTE_LOG_STORE. Then set it again, and put the logs into the store: manage.py log_move")
        here = places()
        if connection.introspection.table_names():
            raise CommandError(f"the database {connection.settings_dict['NAME']} is not empty: restore into a new one")
        try:
            with backup.staged(here.var) as staging:
                manifest = backup.unpack(options["file"], staging)
                backup.check_empty(here)
                # Atomic steps first: a second attempt then finds everything empty.
                with as_owner(connection):
                    backup.load(connection.settings_dict, staging / backup.DATABASE)
                backup.place(staging, here)
        except (backup.BackupError, PostgresError, OSError) as error:
            raise CommandError(only_the_owner(error)) from error
        call_command("migrate", verbosity=0, interactive=False)
        # The processes of the backed-up instance do not run here.
        Job.objects.update(observed_state=ObservedState.STOPPED, pid=None, pgid=None, pid_started=None, lease_owner="", lease_until=None, token="")
        # In a backup all logs are folders, also those that came from a store.
        LogSegment.objects.all().delete()
        LogHead.objects.all().delete()
        rows = manifest["rows"]
        compare = f" Compare: manage.py audit {shlex.join(rows)}" if rows else ""
        self.stdout.write(f"restored: {counted(len(rows), 'feed')}, {counted(sum(rows.values()), 'row')} processed.{compare}")
