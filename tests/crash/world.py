"""A world for crash tests: real processes over the test database and a separate folder, and the
oracle of what must be stored."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from django.conf import settings
from django.db import connection

from engine.model.events import row_schema
from engine.runtime.derived import GraphEvaluator
from engine.sinks.facts import facts_of
from tests.webapp.answers import a_feed, a_user
from webapp.alerts.models import Alert
from webapp.detections.models import Detection, Outbox
from webapp.feeds.heads import feed_head_ensure
from webapp.feeds.logs import event_log
from webapp.feeds.models import DeadLetter, Feed
from webapp.jobs.models import FeedHead, Job
from webapp.platform.folders import ROOT
from webapp.platform.java import spark_environment
from webapp.platform.postgres import with_database
from webapp.queries.derivation import registered
from webapp.queries.models import Query, QueryVersion
from webapp.queries.services import query_register
from webapp.supervisor import processes

SQUARE = {"type": "Polygon", "coordinates": [[[2, 2], [8, 2], [8, 8], [2, 8], [2, 2]]]}
STRIP = {"type": "Polygon", "coordinates": [[[0, 4], [10, 4], [10, 5], [0, 5], [0, 4]]]}
BORDER = {"family": "border", "version": 1, "region": SQUARE}
STAYS = {"family": "transition", "version": 1, "region": STRIP, "within": 3000, "types": ["passed", "returned", "stayed_in", "stayed_out"]}
VISITS = {
    "family": "composite",
    "version": 1,
    "pattern": "CAME : LEFT",
    "primitives": {"CAME": {"where": [["event", "=", "came"]]}, "LEFT": {"where": [["event", "=", "left"]]}},
    "per": "entity",
    "within": 60_000,
    "derive": {"came": {"query": "crossings", "kind": "in", "at": "end"}, "left": {"query": "crossings", "kind": "out", "at": "end"}},
}
"""An answer derived from answers."""
SINCE = {
    "family": "calculus",
    "version": 1,
    "program": "initiatedAt(since(X)=true, T) :- happensAt(visit(X), T).\nterminatedAt(since(X)=true, T) :- happensAt(stay(X), T).",
    "outputs": ["since"],
    "inputs": {"visit": {"args": ["entity"]}, "stay": {"args": ["entity"]}},
    "window": 20_000,
    "step": 2_000,
    "derive": {"visit": {"query": "visits", "kind": "detection", "at": "end"}, "stay": {"query": "stays", "kind": "stayed_in", "at": "start"}},
}
"""Rules over derived answers, and over stays, which are known three seconds after they began."""
RECOVERY_S = 30.0
"""A job must process rows again within this time after any failure."""
ACTING_S = 2.0
"""A query that is registered or removed must act on the running job within this."""
PLAIN_START_S, PLAIN_BATCH_S = 15.0, 1.0
"""A start with nothing to recover, or a batch of a few rows, takes at most about this on two idle
cores."""
GIVEN_UP_S = 240.0
"""How long a test waits before it concludes that something does not happen."""

Published = tuple[str, str, tuple[str, ...], int, int | None]


class World:
    """One feed with two queries, and the processes that work on it. `close` ends all of
    them. `deriving`: with two more queries derived from these. `store`: where the log
    is; empty: in the folder."""

    def __init__(self, folder: Path, *, redis_url: str = "", deriving: bool = False, store: str = "") -> None:
        self.folder = folder
        self.redis_url = redis_url
        (folder / "once").mkdir(exist_ok=True)
        # Most tests look at the files of the log.
        settings.VEDETTE_LOG_STORE = store
        settings.VAR, settings.EVENT_LOG_ROOT, settings.CHECKPOINT_ROOT = folder, folder / "log-of-events", folder / "checkpoints"
        os.environ["VEDETTE_VAR"] = str(folder)
        self.feed: Feed = a_feed("yard", lateness=1000)
        feed_head_ensure(self.feed)
        self.log = event_log("yard")
        self.crossings = self.register("crossings", BORDER, ["in"])
        self.stays = self.register("stays", STAYS, ["stayed_in"])
        if deriving:
            self.visits = self.register("visits", VISITS)
            self.since = self.register("since", SINCE)
        self.random = random.Random(7)
        self.t = 0
        self.places: dict[str, tuple[float, float]] = {}
        self.children: list[subprocess.Popen[bytes]] = []

    # -- input -------------------------------------------------------------------------------------

    def register(self, name: str, specification: dict[str, Any], alert_kinds: Sequence[str] = ()) -> Query:
        return query_register(owner=a_user(), feed=self.feed, name=name, specification=specification, alert_kinds=list(alert_kinds))

    def append(self, rows: int = 300) -> None:
        """Walkers; some rows arrive out of order, twice or too late."""
        batch = [self._row() for _ in range(rows)]
        batch += self.random.sample(batch, 5)
        self.log.append(pa.Table.from_pylist(batch, schema=row_schema(self.feed.engine_feed())))

    def _row(self) -> dict[str, Any]:
        self.t += self.random.randint(0, 20)
        entity = f"w{self.random.randrange(40)}"
        x, y = self.places.get(entity, (self.random.uniform(0, 10), self.random.uniform(0, 10)))
        x, y = (min(10.0, max(0.0, v + self.random.gauss(0, 1))) for v in (x, y))
        self.places[entity] = (x, y)
        delay = self.random.choice([0, 0, 0, 0, 200, 900, 5000 if self.random.random() < 0.1 else 0])
        return {"event": "position", "entity": entity, "t": max(0, self.t - delay), "x": x, "y": y}

    # -- processes ---------------------------------------------------------------------------------

    def environment(self, **more: str) -> dict[str, str]:
        url = with_database(os.environ["DATABASE_URL"], connection.settings_dict["NAME"])
        return {
            **os.environ,
            "DATABASE_URL": url,
            "REDIS_URL": self.redis_url,
            "VEDETTE_VAR": str(self.folder),
            "VEDETTE_LOG_STORE": settings.VEDETTE_LOG_STORE,
            "VEDETTE_FAILPOINTS_ONCE": str(self.folder / "once"),
            "VEDETTE_SPARK_MEMORY": "512m",
            "PYTHONUNBUFFERED": "1",
            **spark_environment(self.folder / "java"),
            **more,
        }

    def start(self, *command: str, name: str, **environment: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                command, cwd=ROOT, env=self.environment(**environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self.children.append(child)
        return child

    def start_job(self, failpoints: str = "", *, job: str = "main", **environment: str) -> subprocess.Popen[bytes]:
        """A job started by hand: it takes over from the process that ran it."""
        marks = {processes.JOB: job, processes.TOKEN: f"hand-{len(self.children)}"}
        log = "job" if job == "main" else f"job-{job}"
        return self.start(sys.executable, "manage.py", "run_job", job, name=log, VEDETTE_FAILPOINTS=failpoints, **marks, **environment)

    def logs(self) -> str:
        """The last output of the processes, and the stacks of those that still run."""
        for child in self.children:
            if child.poll() is None and (psutil.Process(child.pid).cmdline()[1:2] == ["manage.py"]):
                child.send_signal(signal.SIGUSR1)
        time.sleep(1.0)
        files = [*self.folder.glob("*.log"), *self.folder.glob("log/*.log")]
        return "\n".join(f"--- {path.name}\n" + path.read_text(errors="replace")[-8000:] for path in files)

    def wait(self, done: Callable[[], bool], seconds: float = GIVEN_UP_S, what: str = "") -> float:
        """Waits until `done`; returns how long it took. Fails with the processes' logs."""
        started = time.monotonic()
        while not done():
            assert time.monotonic() - started < seconds, f"not within {seconds:g} s: {what or done}\n{self.logs()}"
            time.sleep(0.02)
        return time.monotonic() - started

    def caught_up(self) -> bool:
        head = FeedHead.objects.get(feed=self.feed)
        return head.last_seq == self.log.end[0] - 1 and head.query_version == Feed.objects.get(pk=self.feed.pk).query_version

    def wait_caught_up(self) -> float:
        return self.wait(self.caught_up, what="all rows processed")

    def plain_start(self) -> float:
        """Starts the job, with nothing to recover, until it has processed all rows; returns the
        time, which measures the speed of the machine."""
        started = time.monotonic()
        self.start_job()
        self.wait_caught_up()
        return time.monotonic() - started

    def plain_batch(self) -> float:
        """How long a few rows take to be processed, which measures the speed of
        the machine at this moment."""
        self.append(10)
        return self.wait_caught_up()

    def job_pid(self) -> int:
        pid = Job.objects.get().pid
        assert pid is not None
        return int(pid)

    def close(self) -> None:
        for found in processes.job_processes():
            with suppress(psutil.NoSuchProcess):
                found.process.kill()
        for child in self.children:
            # The whole group: a worker that a test killed leaves its pool behind.
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def no_process_left(self) -> bool:
        return not processes.job_processes()

    # -- the oracle --------------------------------------------------------------------------------

    def oracle(self) -> tuple[GraphEvaluator, pa.Table, dict[str, int]]:
        """All rows of the log through one evaluator that has all queries from the beginning."""
        feed = self.feed.engine_feed()
        rows = QueryVersion.objects.filter(to_feed_version=None, query__stops=None).order_by("query_id")
        evaluator = GraphEvaluator.local(feed, registered(rows, feed))
        outcomes = [evaluator.process(table) for table in self.log.read()]
        counts = {
            "processed": sum(outcome.processed for outcome in outcomes),
            "duplicates": sum(outcome.duplicates for outcome in outcomes),
            "late": sum(outcome.late.num_rows for outcome in outcomes),
        }
        return evaluator, pa.concat_tables([outcome.changes for outcome in outcomes]), counts

    def check(self, *, alerts: bool = True, removed: Collection[int] = (), forgotten: Collection[str] = ()) -> None:
        """Everything stored is exactly the oracle's: answers, alerts, counters, late rows, outbox.
        The outbox keeps its entries about `removed` queries and `forgotten` answers."""
        _, changes, counts = self.oracle()
        facts = {fact.key: fact for fact in facts_of(changes)}
        stored = {bytes(row.key): row for row in Detection.objects.filter(weight=1)}
        assert stored.keys() == {key for key, fact in facts.items() if fact.weight}
        assert all((row.start, row.end, row.kind) == (facts[key].start, facts[key].end, facts[key].kind) for key, row in stored.items())
        assert len(stored) > 20, "the world is too quiet to show anything"
        if alerts:
            wanted = {(self.crossings.pk, "in"), (self.stays.pk, "stayed_in")}
            expected = {key for key, fact in facts.items() if (fact.query_id, fact.kind) in wanted and not stored[key].backfill}
            found = [bytes(alert.detection_key) for alert in Alert.objects.all()]
            assert Counter(found) == Counter(expected)
        head = FeedHead.objects.get(feed=self.feed)
        assert {name: getattr(head, name) for name in counts} == counts
        assert sum(counts.values()) == self.log.end[0]
        assert DeadLetter.objects.filter(feed=self.feed, reason="late").count() == counts["late"]
        self._check_outbox(head, stored, removed, forgotten)

    def _check_outbox(self, head: FeedHead, stored: dict[bytes, Detection], removed: Collection[int], forgotten: Collection[str]) -> None:
        rows = list(Outbox.objects.order_by("seq"))
        assert [row.seq for row in rows] == list(range(1, head.outbox_seq + 1))
        published = [detection for row in rows for detection in row.payload["detections"] if detection["query"] not in removed]
        published = [detection for detection in published if detection["id"] not in forgotten]
        # A fact that was retracted was published before.
        last = {detection["id"]: detection["weight"] for detection in published}
        assert {key for key, weight in last.items() if weight > 0} == {key.hex() for key in stored}
        # What a query finds in history may be published again after a crash; what it finds live is
        # published once, again when an open answer ends.
        live = {key.hex() for key, row in stored.items() if not row.backfill}
        counted = Counter(
            (detection["id"], detection["end"], detection["value"], detection["weight"]) for detection in published if detection["id"] in live
        )
        again = [key for key, count in counted.items() if count > 1]
        assert not again, [(row.seq, one) for row in rows for one in row.payload["detections"] if one["id"] in {key for key, *_ in again}]


def assert_within(limit: float, taken: float, *, pace: float, plain: float, what: str) -> None:
    """`taken` is at most `limit` seconds; more by the factor by which the same test found the
    machine slow (`pace` instead of `plain`)."""
    allowed = limit * max(1.0, pace / plain)
    sys.stdout.write(f"{what}: {taken:.1f} s (at most {allowed:.1f}; the pace is {pace:.1f} s for {plain:g})\n")
    assert taken <= allowed, f"{what} took {taken:.1f} s; at most {allowed:.1f} s"


def descendants(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def jvm_of(pid: int) -> psutil.Process:
    """The JVM that the job's main process started."""
    return next(process for process in descendants(pid) if process.name() == "java")
