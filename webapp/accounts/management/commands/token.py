"""`manage.py token USER`: a token for a program, created by the operator of the server: the first
one needs no page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from engine.model.faults import Refused
from webapp.accounts.models import Scope, User
from webapp.accounts.services import token_create


class Command(BaseCommand):
    """Prints only the token, for `TOKEN=$(manage.py token ...)`; everything else goes to standard
    error."""

    help = "Creates a token of a user and prints it: it is not stored in clear."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the user whose permissions the token has")
        parser.add_argument("--name", default="made by manage.py token", help="its name on the page Account")
        parser.add_argument("--scope", action="append", choices=Scope.values, help="may be given again; default: ingest and read")
        parser.add_argument("--days", type=int, help="days of validity (default: the maximum)")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            known = ", ".join(User.objects.filter(is_active=True).order_by("username").values_list("username", flat=True)[:20])
            raise CommandError(f"There is no user {options['user']!r}. Known: {known or 'none; make one with manage.py createsuperuser'}.")
        if options["days"] is not None and options["days"] < 1:
            raise CommandError("--days is 1 or more.")
        expires = None if options["days"] is None else timezone.now() + timedelta(days=options["days"])
        try:
            made = token_create(user=user, name=options["name"], scopes=options["scope"] or [Scope.INGEST, Scope.READ], expires_at=expires)
        except Refused as refused:
            raise CommandError(" ".join(fault.message for fault in refused.faults)) from refused
        until = f"until {made.token.expires_at:%Y-%m-%d %H:%M} UTC"
        self.stderr.write(f"A token of {user.username} with the scopes {', '.join(made.token.scopes)}, valid {until}:")
        self.stdout.write(made.text)
