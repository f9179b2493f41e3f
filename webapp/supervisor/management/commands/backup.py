"""`manage.py backup FILE`: all of a running instance's data, as of one moment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection, transaction

from engine.model.counts import counted
from engine.sources.segments import LogDamaged
from webapp.config.database_roles import as_owner
from webapp.feeds.logs import is_shared, logs_copy, states_copy
from webapp.jobs.models import FeedHead
from webapp.platform import backup
from webapp.platform.postgres import PostgresError


def places() -> backup.InstanceFolders:
    """This instance's folders."""
    return backup.InstanceFolders(Path(settings.VAR), Path(settings.EVENT_LOG_ROOT), Path(settings.CHECKPOINT_ROOT), Path(settings.MEDIA_ROOT))


def only_the_owner(error: Exception) -> str:
    """The text of an error, with the remedy where a right is missing."""
    if settings.DATABASE_OWNER or "permission denied" not in str(error):
        return str(error)
    return "DATABASE_OWNER_URL is not set, and only the owner of the database may do this (with make demo, up or cluster: . VAR/environment-owner)"


class Command(BaseCommand):
    help = "Writes database, log, state and plans of this instance into one file, while everything runs. Secrets of the environment are not in it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the file to write, e.g. vedette.tar")
        parser.add_argument("--replace", action="store_true", help="replace a file of this name once the new backup is complete")

    def handle(self, *args: Any, **options: Any) -> None:
        target = options["file"].resolve()
        here = places()
        if target.is_dir():
            raise CommandError(f"{target} is a folder: name a file in it")
        if target.exists() and not options["replace"]:
            raise CommandError(f"{target} is there already: choose another name, or replace it with --replace")
        # Before everything is copied.
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise CommandError(f"{target.parent} is no folder that this user may write to: make it, or name another")
        try:
            with backup.staged(here.var) as staging, as_owner(connection):
                rows = self._take(here, staging)
                backup.pack(staging, target, {"rows": rows})
        except (backup.BackupError, PostgresError, LogDamaged, OSError) as error:
            raise CommandError(only_the_owner(error)) from error
        self.stdout.write(f"{target}: {counted(len(rows), 'feed')}, {counted(sum(rows.values()), 'row')} processed, {target.stat().st_size:,} bytes")

    def _take(self, here: backup.InstanceFolders, staging: Path) -> dict[str, int]:
        """Copies everything into `staging`; returns how many rows of each feed are processed."""
        for _ in range(backup.TRIES):
            with transaction.atomic():
                with backup.held(here), connection.cursor() as cursor:
                    cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    cursor.execute("SELECT pg_export_snapshot()")
                    snapshot = cursor.fetchone()[0]
                    heads = list(FeedHead.objects.values_list("feed__name", "snapshot", "last_seq"))
                    if not is_shared():
                        backup.link_logs(here, staging / backup.LOG)
                    states = {name: state for name, state, _ in heads}
                    is_whole = backup.link_moment(here, {} if is_shared() else states, staging)
                if is_whole and (not is_shared() or states_copy(states, staging / "state")):
                    if is_shared():
                        # None of the files that this transaction knows is deleted within the hour.
                        logs_copy(staging / backup.LOG)
                    backup.dump(connection.settings_dict, snapshot, staging / backup.DATABASE)
                    return {name: last_seq + 1 for name, _, last_seq in heads}
            for path in staging.iterdir():
                shutil.rmtree(path)
        raise backup.BackupError("the state of a feed changed faster than it could be looked at: try again")
