"""Writes the data of a release, for the test that starts newer code on them:
`python tests/upgrade/make.py FOLDER`.

Run it in a checkout of the release, with this file's path: it uses the working folder's code. It
starts a PostgreSQL and a real job, sends rows, ends the job in the middle of the feed, and writes
FOLDER/database.sql.gz (of pg_dump) and FOLDER/files.tar.gz (the log of events and the checkpoints).
"""

from __future__ import annotations

import gzip
import os
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path.cwd()))

SQUARE = {"type": "Polygon", "coordinates": [[[2, 2], [8, 2], [8, 8], [2, 8], [2, 2]]]}
QUERIES: dict[str, dict[str, Any]] = {
    "crossings": {"family": "border", "version": 1, "region": {"region": "dock"}},
    "stays": {"family": "transition", "version": 1, "region": {"region": "dock"}, "within": "PT3S"},
    "inside": {
        "family": "motion", "version": 1, "every": "PT2S", "theta": None,
        "predicates": [{"inside": {"region": "dock"}, "window": ["PT6S", "PT0S"], "quantifier": "forall"}],
    },
    "pairs": {
        "family": "constraint", "version": 1, "report": "first",
        "variables": {"A": {"where": [["speed", ">", 3]]}, "B": {"where": [["speed", "<", 1]]}},
        "constraints": [{"between": ["A", "B"], "dt": [0, 400], "distance": {"max": 1.5}}],
    },
    "bursts": {
        "family": "composite", "version": 1, "pattern": "A : B", "per": "entity", "within": "PT4S",
        "primitives": {"A": {"where": [["speed", ">", 3]]}, "B": {"where": [["speed", "<", 1]]}},
    },
    "fast": {
        "family": "calculus", "version": 1, "outputs": ["pace"], "window": "PT30S", "step": "PT5S",
        "program": "initiatedAt(pace(V)=fast, T) :- happensAt(position(V, S), T), S > 3.\n"
        "initiatedAt(pace(V)=slow, T) :- happensAt(position(V, S), T), S < 1.",
        "inputs": {"position": {"args": ["entity", "speed"]}},
    },
}  # fmt: skip
PARTS, ROWS = 12, 120


class World:
    """Walkers on a plane; some rows are late, duplicates or invalid."""

    def __init__(self) -> None:
        self.random = random.Random(18)
        self.t = 1_700_000_000_000
        self.places: dict[str, tuple[float, float]] = {}

    def rows(self) -> list[dict[str, Any]]:
        rows = [self.row() for _ in range(ROWS)]
        return [*rows, *self.random.sample(rows, 3)]

    def row(self) -> dict[str, Any]:
        self.t += self.random.randint(0, 100)
        entity = f"w{self.random.randrange(12)}"
        x, y = self.places.get(entity, (self.random.uniform(0, 10), self.random.uniform(0, 10)))
        x, y = (min(10.0, max(0.0, v + self.random.gauss(0, 1))) for v in (x, y))
        self.places[entity] = (x, y)
        delay = self.random.choice([0, 0, 0, 0, 0, 900, 5000 if self.random.random() < 0.2 else 0])
        return {"event": "position", "entity": entity, "t": self.t - delay, "x": x, "y": y, "speed": self.random.uniform(0, 4)}


def prepare() -> Any:
    """Migrates, creates users, a feed, a region and queries; returns the feed."""
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    from webapp.accounts.models import User
    from webapp.feeds.services import feed_create, region_create
    from webapp.queries.services import query_register

    owner = User.objects.create_user("ada", password="ada has a password")
    feed = feed_create(owner=owner, name="yard", title="The yard", crs="planar", time="ms", lateness=1000, columns={"speed": "float"}, public=True)
    region_create(owner=owner, feed=feed, name="dock", geometry=SQUARE, tags=["dock"])
    for name, specification in QUERIES.items():
        query_register(owner=owner, feed=feed, name=name, specification=specification, alert_kinds=["in"] if name == "crossings" else [])
    return feed


def send(feed: Any, world: World, part: int) -> None:
    """One delivery under a key, as over HTTP, with a row that becomes a dead letter."""
    import json

    from webapp.feeds.bodies import read_body
    from webapp.feeds.ingest import Delivery, ingest

    body = "\n".join(json.dumps(row) for row in [*world.rows(), {"entity": "x", "t": 1, "x": 1.0}]).encode()
    piece = read_body(body, "application/x-ndjson", feed.engine_feed())
    ingest(feed, Delivery(piece.rows, piece.dead(), "make.py", f"part-{part}", f"digest-{part}"))


def wait(done: Any, what: str) -> None:
    deadline = time.monotonic() + 900
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit(f"not within 900 s: {what}")
        time.sleep(0.05)


def fill(feed: Any, var: Path) -> None:
    """Most parts are processed by a job, and the first of them compacted; the
    last ones wait in the log."""
    from webapp.feeds.maintenance import feed_maintain
    from webapp.feeds.recent import log_of
    from webapp.jobs.models import FeedHead
    from webapp.platform.java import spark_environment

    def caught_up() -> bool:
        return FeedHead.objects.get().last_seq == log_of(feed).end[0] - 1

    world = World()
    send(feed, world, 0)
    job = subprocess.Popen(
        [sys.executable, "manage.py", "run_job", "main"], env={**os.environ, **spark_environment(var / "java")}, start_new_session=True
    )
    try:
        for part in range(1, PARTS):
            wait(caught_up, "all rows processed")
            send(feed, world, part)
            if part in (4, 8):
                feed_maintain(feed=feed)
        wait(caught_up, "all rows processed")
    finally:
        job.send_signal(signal.SIGTERM)
        job.wait(60)
    for part in range(PARTS, PARTS + 3):
        send(feed, world, part)


def keep(url: str, var: Path, folder: Path) -> None:
    """Dumps the database and copies the files into `folder`."""
    from webapp.platform.postgres import _programs

    folder.mkdir(parents=True, exist_ok=True)
    dump = subprocess.run([str(_programs() / "pg_dump"), "--no-owner", "--no-privileges", f"--dbname={url}"], check=True, capture_output=True).stdout
    # psql of other versions does not know the commands of the newest one.
    lines = [line for line in dump.splitlines(keepends=True) if not line.startswith((b"\\restrict", b"\\unrestrict"))]
    (folder / "database.sql.gz").write_bytes(gzip.compress(b"".join(lines), 9, mtime=0))
    with tarfile.open(folder / "files.tar.gz", "w:gz") as archive:
        for name in ("log-of-events", "checkpoints"):
            archive.add(var / name, name)


def main(folder: Path) -> None:
    from webapp.platform.postgres import READER, EmbeddedPostgres, fresh_database, with_database

    with tempfile.TemporaryDirectory(prefix="vedette-release-") as name:
        var = Path(name)
        var.chmod(0o711)
        server = EmbeddedPostgres(var / "postgres")
        with server.running():
            owner_url = fresh_database(server.owner_url, "release")
            os.environ.update(
                DATABASE_URL=with_database(server.url, "release"),
                DATABASE_OWNER_URL=owner_url,
                DATABASE_READER_ROLE=READER,
                REDIS_URL="",
                VEDETTE_VAR=str(var),
                SECRET_KEY="of a release that is made for a test and serves nobody",
                # That of tests/conftest.py: the upgraded site reads what is encrypted.
                VEDETTE_SECRETS_KEYS="dGVzdHMgZW5jcnlwdCB3aXRoIHRoaXMgYWxvbmUhISE=",
                DJANGO_SETTINGS_MODULE="webapp.config.settings",
                VEDETTE_SPARK_MEMORY="512m",
            )
            fill(prepare(), var)
            keep(owner_url, var, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
