"""`python -m engine.backtest`."""

import sys

from engine.backtest.command import main

if __name__ == "__main__":
    sys.exit(main())
