"""`manage.py backtest`: any queries over any file, without database or services."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from engine.backtest import command


class Command(BaseCommand):
    help = "Evaluate queries over a file of events and write their answers to a file."
    requires_system_checks = ()
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        command.add_options(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        status = command.run_options(options)
        if status:
            sys.exit(status)
