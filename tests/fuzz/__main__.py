"""`python -m tests.fuzz --count 20000`: a server of its own (PostgreSQL, daphne) is sent mutated uploads of every format and mutated specifications.

Ends with status 1 when an answer was the server's fault or late, or when the server grew by more than 150 MB.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

GROWTH_BYTES = 150_000_000
ROUND = 500
"""Kinds take turns, so many requests each: a run that is cut short has sent of all."""


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    options.add_argument("--count", type=int, default=20_000, help="requests of each kind")
    options.add_argument("--kinds", default="", help="some of them, separated by commas; all when empty")
    options.add_argument("--seed", type=int, default=17)
    options.add_argument("--minutes", type=float, default=600.0, help="stop after so long")
    options.add_argument("--threads", type=int, default=1, help="connections at once")
    options.add_argument("--keep", type=Path, default=Path("var/fuzz"), help="where requests go that were answered badly")
    given = options.parse_args()

    from webapp.platform.folders import PortReservation
    from webapp.platform.postgres import EmbeddedPostgres

    with tempfile.TemporaryDirectory(prefix="vedette-fuzz-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        server = EmbeddedPostgres(folder / "postgres", reservation=PortReservation())
        os.environ.update(DJANGO_SETTINGS_MODULE="tests.fuzz.settings", VEDETTE_VAR=name, SECRET_KEY="signs nothing that lasts longer than this run")
        os.environ.update(ALLOWED_HOSTS="127.0.0.1", REDIS_URL="", DATABASE_URL=server.owner_url)
        server.start()
        try:
            from tests.fuzz.server import migrated, running

            migrated()
            with running() as campaign:
                campaign.threads = given.threads
                return _run(campaign, given)
        finally:
            server.stop()


def _run(campaign: object, given: argparse.Namespace) -> int:
    from tests.fuzz.campaign import WARM, Campaign, Memory, Report, keep, kinds, told

    assert isinstance(campaign, Campaign)
    chosen = [kind for kind in given.kinds.split(",") if kind] or list(kinds())
    for kind in chosen:  # The server loads its code.
        campaign.run(kind, WARM, seed=-1)
    memory, end = Memory(campaign.process), time.monotonic() + 60 * given.minutes
    memory.look()
    reports = {kind: Report(kind) for kind in chosen}
    for begin in range(0, given.count, ROUND):
        for kind, total in reports.items():
            if time.monotonic() > end:
                break
            found = campaign.run(kind, min(ROUND, given.count - begin), seed=given.seed + 1_000 * begin)
            total.statuses += found.statuses
            total.slowest, total.bad = max(total.slowest, found.slowest), total.bad + found.bad
            memory.look()
            keep(found, given.keep)
            print(f"{total}; web process {told(memory.most)}", flush=True)
    print(f"the web process grew by {told(memory.growth)}, from {told(memory.first)}")
    bad = sum(len(report.bad) for report in reports.values())
    return int(bool(bad) or memory.growth > GROWTH_BYTES)


if __name__ == "__main__":
    sys.exit(main())
