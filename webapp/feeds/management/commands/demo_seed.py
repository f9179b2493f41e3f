"""`manage.py demo_seed`: what a newcomer finds. May be run again: nothing is doubled, nothing that was changed is changed back."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.feeds.demo import seed

PASSWORD_VARIABLES = ("VEDETTE_DEMO_PASSWORD", "DEMO_PASSWORD")


class Command(BaseCommand):
    """Users, team, feeds, regions, queries, the simulators' token."""

    help = "Prepares the demo. The users' password is taken from VEDETTE_DEMO_PASSWORD."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-feeds", action="store_true", help="users and team only")

    def handle(self, *args: Any, **options: Any) -> None:
        password = next((os.environ[name] for name in PASSWORD_VARIABLES if os.environ.get(name)), None)
        try:
            feeds = seed(password=password, feeds=not options["no_feeds"])
        except ValueError as error:
            raise CommandError(str(error)) from error
        for feed in feeds:
            self.stdout.write(f"{feed.name}: {feed.regions.count()} regions, {feed.queries.filter(deleted_at=None).count()} queries")
