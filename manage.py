#!/usr/bin/env python3
"""Django's command line for Vedette; `manage.py backtest` is answered without Django."""

import faulthandler
import os
import signal
import sys

NOT_MIGRATED = ("42P01", "42703")
"""PostgreSQL's error codes for a table or a column that does not exist."""
OURS = ("engine", "webapp", "bench", "tests", "fixtures")
NO_CONNECTION = "connection to server"
"""How libpq begins when PostgreSQL cannot be reached."""


def main() -> int:
    """Runs the command named by the arguments and returns its exit status. On SIGUSR1 the process
    writes the stacks of all its threads."""
    faulthandler.register(signal.SIGUSR1)
    if sys.argv[1:2] == ["backtest"]:
        # It needs no database, no broker and no settings: the engine's own program, started
        # in a fraction of the time.
        from engine.backtest.command import main as backtest

        return backtest(sys.argv[2:])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
    import django

    from webapp.platform.memory import loading

    with loading():
        django.setup()
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, ProgrammingError

    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        fault = str(error).strip().splitlines()[0]
        if not fault.startswith(NO_CONNECTION) or "--traceback" in sys.argv:
            raise
        sys.exit(f"{fault}. {_where_the_database_is()}")
    except ProgrammingError as error:
        if getattr(error.__cause__, "pgcode", None) not in NOT_MIGRATED:
            raise
        fault = str(error).strip().splitlines()[0]
        sys.exit(f"{fault}. The database does not have this version's tables: run manage.py migrate")
    except (OSError, ValueError) as error:
        from engine.sources.store import StoreError, StoreUnavailable

        if not isinstance(error, StoreError | StoreUnavailable) or "--traceback" in sys.argv:
            raise
        sys.exit(str(error))
    return 0


def _where_the_database_is() -> str:
    if "DATABASE_URL" in os.environ:
        return "Is PostgreSQL running where DATABASE_URL says?"
    return "DATABASE_URL is not set: it names the database. For a system that `make demo` or `make up` runs: `. var/environment` first"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.split(".")[0] in OURS:
            raise
        sys.exit(f"The package {missing.name} is not installed for {sys.executable}. Use .venv/bin/python manage.py; `make setup` makes it.")
