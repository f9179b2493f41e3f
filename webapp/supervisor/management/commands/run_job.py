"""`manage.py run_job NAME`: the process of one job. Started by the
reconciler; by hand for debugging."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from engine.model.faults import unknown_name
from engine.model.messages import untranslated


class Command(BaseCommand):
    help = "Runs a job: one Spark driver that evaluates all queries of its feeds. Started by hand it takes over from the process that runs it."
    # They load every page; the program that migrates has run them.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the job's name, e.g. main")
        parser.add_argument("--epoch", type=int, help="the number of the start, from the reconciler (default: the next one)")

    def handle(self, *args: Any, **options: Any) -> None:
        from webapp.jobs.models import Job
        from webapp.supervisor.driver import JobDriver

        known = [] if options["epoch"] is not None else list(Job.objects.values_list("name", flat=True))
        if known and options["name"] not in known:
            raise CommandError(str(unknown_name(options["name"], known, what=untranslated("job"))))
        status = JobDriver(options["name"], options["epoch"]).run()
        sys.stdout.flush()
        sys.stderr.flush()
        # Not sys.exit: threads that still wait for a dead JVM would block the process.
        os._exit(status)
