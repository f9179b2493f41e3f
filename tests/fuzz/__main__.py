"""`python -m tests.fuzz --count 20000` sends mutated uploads of every format and mutated
specifications to a separate server (PostgreSQL, daphne).

Requests are numbered, and `progress.json` records the progress: an interrupted run continues there.
Ends with status 1 when an answer was the server's fault or late, or when the server grew by more
than 150 MB. Several runs at once share the work, each with its own `--kinds` and `--keep`.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Imported later: it needs Django's settings, which are known only with the server's folders.
    from tests.fuzz.campaign import Campaign, Memory, Report

GROWTH_BYTES = 150_000_000
ROUND = 200
"""Kinds take turns, with this many requests each: an interrupted run has sent some of all."""


@dataclass
class Progress:
    """The progress of each kind, over all runs with this file."""

    file: Path
    seed: int
    begin: int = 0
    known: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.file.exists():
            kept = json.loads(self.file.read_text())
            self.known = kept["kinds"] if kept["seed"] == self.seed else {}

    def done(self, kind: str) -> int:
        """The number of requests of a kind that were sent; those before `begin` by other runs."""
        return max(self.begin, int(self.known.get(kind, {}).get("done", 0)))

    def add(self, report: Report, growth: int) -> None:
        """Counts requests that were sent."""
        before = self.known.get(report.kind, {})
        self.known[report.kind] = {
            "done": self.done(report.kind) + sum(report.statuses.values()),
            "statuses": dict(Counter(before.get("statuses", {})) + Counter({str(status): n for status, n in report.statuses.items()})),
            "slowest_s": round(max(before.get("slowest_s", 0.0), report.slowest), 2),
            "bad": before.get("bad", 0) + len(report.bad),
            "late_beside_others_only": before.get("late_beside_others_only", 0) + report.excused,
            "growth_bytes": max(before.get("growth_bytes", 0), growth),
        }
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps({"seed": self.seed, "kinds": self.known}, indent=1))


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    options.add_argument("--count", type=int, default=20_000, help="requests of each kind, over all runs")
    options.add_argument("--kinds", default="", help="some of them, separated by commas; all when empty")
    options.add_argument("--seed", type=int, default=17)
    options.add_argument(
        "--begin", type=int, default=0, help="the first number, if other runs have sent the ones before it and their progress is not here"
    )
    options.add_argument("--minutes", type=float, default=600.0, help="maximum duration")
    options.add_argument("--threads", type=int, default=4, help="connections at once; files that one process reads come by one")
    options.add_argument("--keep", type=Path, default=Path("var/fuzz"), help="folder for the progress, and for requests with wrong responses")
    given = options.parse_args()
    # The server's processes end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    from webapp.platform.folders import PortReservation
    from webapp.platform.postgres import EmbeddedPostgres

    with tempfile.TemporaryDirectory(prefix="vedette-fuzz-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        server = EmbeddedPostgres(folder / "postgres", reservation=PortReservation())
        os.environ.update(DJANGO_SETTINGS_MODULE="tests.fuzz.settings", VEDETTE_VAR=name, SECRET_KEY="signs nothing that lasts longer than this run")
        os.environ.update(ALLOWED_HOSTS="127.0.0.1", REDIS_URL="", DATABASE_URL=server.owner_url, VEDETTE_SECRETS_KEYS=secrets.token_urlsafe(32))
        server.start()
        try:
            from tests.fuzz.server import migrated, running

            migrated()
            with running() as campaign:
                campaign.threads = given.threads
                return _run(campaign, given)
        finally:
            server.stop()


def _run(campaign: Campaign, given: argparse.Namespace) -> int:
    from tests.fuzz.campaign import WARM, Memory, as_text, kinds

    chosen = [kind for kind in given.kinds.split(",") if kind] or list(kinds())
    for kind in chosen:  # The server loads its code.
        campaign.run(kind, range(WARM), seed=-1)
    memory, end = Memory(campaign.process), time.monotonic() + 60 * given.minutes
    memory.look()
    progress, bad = Progress(given.keep / "progress.json", given.seed, begin=given.begin), 0
    for kind in _turns(chosen, progress, given.count):
        if time.monotonic() > end:
            break
        numbers = range(progress.done(kind), min(progress.done(kind) + ROUND, given.count))
        bad += _round(campaign, kind, numbers, progress, memory, given.keep)
    print(f"the web process grew by {as_text(memory.growth)}, from {as_text(memory.first)}")
    return int(bool(bad) or memory.growth > GROWTH_BYTES)


def _turns(chosen: list[str], progress: Progress, count: int) -> Iterator[str]:
    """Runs the kinds in turn, until there are `count` requests of each."""
    while waiting := [kind for kind in chosen if progress.done(kind) < count]:
        yield from waiting


def _round(campaign: Campaign, kind: str, numbers: range, progress: Progress, memory: Memory, folder: Path) -> int:
    """Sends the requests with these numbers; returns how many got a bad response."""
    from tests.fuzz.campaign import as_text, keep

    started = time.monotonic()
    report = campaign.run(kind, numbers, progress.seed)
    took = time.monotonic() - started
    campaign.judge_late(report)
    memory.look()
    keep(report, folder)
    progress.add(report, memory.growth)
    print(f"{numbers.stop:,} of {report}; {len(numbers) / took:.1f}/s; web process {as_text(memory.most)}", flush=True)
    return len(report.bad)


if __name__ == "__main__":
    sys.exit(main())
