#!/usr/bin/env python3
"""Django's command line for Vedette; `manage.py backtest` is answered without Django."""

import faulthandler
import os
import signal
import sys


def main() -> int:
    """Runs the command named by the arguments and returns its exit status. On SIGUSR1 the process writes where all its threads stand."""
    faulthandler.register(signal.SIGUSR1)
    if sys.argv[1:2] == ["backtest"]:
        # It needs no database, no broker and no settings: the engine's own program, started in a fraction of the time.
        from engine.backtest import main as backtest

        return backtest(sys.argv[2:])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
