"""`manage.py demo_seed`: the demo's users, feeds and queries. May be run again: nothing is
duplicated, and changes are kept."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from engine.model.counts import counted
from webapp.demo.seed import seed


class Command(BaseCommand):
    """Users, team, feeds, regions, queries, the simulators' token."""

    help = "Prepares the demo. New users get their passwords from VEDETTE_DEMO_PASSWORD and VEDETTE_DEMO_ADMIN_PASSWORD."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-feeds", action="store_true", help="users and team only")

    def handle(self, *args: Any, **options: Any) -> None:
        passwords = {"password": os.environ.get("VEDETTE_DEMO_PASSWORD"), "admin_password": os.environ.get("VEDETTE_DEMO_ADMIN_PASSWORD")}
        try:
            feeds = seed(**passwords, feeds=not options["no_feeds"])
        except ValueError as error:
            raise CommandError(str(error)) from error
        for feed in feeds:
            queries = counted(feed.queries.filter(deleted_at=None).count(), "query", "queries")
            self.stdout.write(f"{feed.name}: {counted(feed.regions.count(), 'region')}, {queries}")
