"""`make cluster` under load while its processes are killed at random:
`python -m tests.crash.cluster SECONDS [SEED]`. The result must be exact.

Two senders post rows to the two web servers, each delivery under its key until it is answered; a
third writes to a topic of Kafka, which a connector drains into a feed, whose answers another
connector writes to a topic. Every two seconds or so one process of the cluster gets KILL:
PostgreSQL, Valkey, Kafka, the store, Spark's master and workers, executors, the job, web servers,
ingests, whatever is drawn. With `--scale` nothing is killed: a fifth Spark worker joins while the
job runs, and leaves again.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg2
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.topics import messages_of
from webapp.platform.folders import ROOT

Say = Callable[[str], None]
READY_S = 600.0
SETTLES_S = 900.0
ANSWERS_S = 60.0
ROWS = 200
BETWEEN_S = 2.0
PARTITIONS = 3
WRITES_S = 0.2
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}


def _only(entity: str) -> dict[str, Any]:
    """A condition that the rows of one entity satisfy."""
    return {"where": [["entity", "=", entity]]}


QUERIES = [
    {"family": "border", "version": 1, "region": SQUARE},
    {"family": "occupancy", "version": 1, "region": SQUARE, "count": [">=", 3]},
    # These have all rows broadcast to them.
    {"family": "composite", "version": 1, "pattern": "A : B", "primitives": {"A": _only("e0-1"), "B": _only("e1-1")}, "within": 90},
    {
        "family": "constraint",
        "version": 1,
        "variables": {"A": _only("e0-2"), "B": _only("e1-2")},
        "constraints": [{"between": ["A", "B"], "dt": [0, 90], "distance": {"max": 0.5}}],
    },
]
PREPARE = f"""
import django; django.setup()
from webapp.accounts.models import Scope, User
from webapp.accounts.services import token_create
from webapp.connectors.services import connector_create
from webapp.feeds.services import feed_create
from webapp.queries.services import query_register
owner = User.objects.create_superuser("driver", password="drives the cluster")
# Rows of several partitions of a topic are not in order.
for name, lateness in (("yard", 2_000), ("dock", 60_000)):
    feed = feed_create(owner=owner, name=name, title=name, crs="planar", time="ms", lateness=lateness)
    for i, specification in enumerate({QUERIES!r}):
        query_register(owner=owner, feed=feed, name=f"q{{i}}", specification=specification, alert_kinds=[])
for kind, topic in (("kafka", "rows"), ("kafka-answers", "answers")):
    connector_create(feed=feed, name=topic, kind=kind, settings={{"servers": "SERVERS", "topic": topic}}, set_by=owner)
print(token_create(user=owner, name="driver", scopes=[Scope.INGEST, Scope.READ]).text)
"""
POSITIONS = "SELECT feeds_feed.name, last_seq FROM jobs_feedhead JOIN feeds_feed ON feeds_feed.id = feed_id"
STILL_S = 5.0
STATUS = """
import django; django.setup()
import json
from webapp.feeds.logs import event_log
from webapp.feeds.models import Connector, IngestCounter
from webapp.jobs.models import FeedHead
found = {}
for head in FeedHead.objects.select_related("job"):
    name = head.feed.name
    counter = IngestCounter.objects.filter(feed__name=name).first()
    found[name] = {"log": event_log(name).end[0], "done": head.last_seq + 1, "received": counter.received if counter else 0}
    sink = Connector.objects.filter(feed__name=name, kind="kafka-answers").first()
    if sink:
        found[name]["unsent"] = head.outbox_seq - (sink.offset or {}).get("seq", 0)
    found["job"] = head.job.observed_state
print(json.dumps(found))
"""
STORED = """
import django; django.setup()
import json
from webapp.detections.models import Detection
print(json.dumps({bytes(key).hex(): end for key, end in Detection.objects.filter(feed__name="dock", weight=1).values_list("key", "end")}))
"""
Status = dict[str, Any]


class Cluster:
    """A running `make cluster`."""

    def __init__(self, var: Path, port: int) -> None:
        self.var, self.said = var, var / "cluster.out"
        with self.said.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "webapp.platform.cluster"],
                cwd=ROOT,
                env={**os.environ, "VEDETTE_VAR": str(var), "VEDETTE_PORT": str(port)},
                stdout=output,
                stderr=output,
            )

    def wait_ready(self) -> list[int]:
        """The ports of the web servers."""
        give_up = time.monotonic() + READY_S
        while not (found := re.search(r"The cluster is ready.*?:(\d+)/ and http://127.0.0.1:(\d+)/", self.said.read_text(errors="replace"))):
            assert self.process.poll() is None and time.monotonic() < give_up, self.said.read_text(errors="replace")[-3_000:]
            time.sleep(0.5)
        return [int(port) for port in found.groups()]

    @property
    def kafka(self) -> dict[str, Any]:
        """The settings of clients of its broker."""
        return {"bootstrap.servers": f"127.0.0.1:{int((self.var / 'kafka' / 'port').read_text())}", "log_level": 0}

    def python(self, program: str, *, timeout: float = 300.0) -> str:
        """The output of a program that runs like one of the cluster's processes."""
        return self._run([sys.executable, "-c", program], timeout)

    def manage(self, *arguments: str, timeout: float = 900.0) -> str:
        return self._run([sys.executable, "manage.py", *arguments], timeout)

    def variables(self) -> dict[str, str]:
        """The settings of its processes."""
        lines = (self.var / "environment").read_text().splitlines()
        given = dict(line.removeprefix("export ").split("=", 1) for line in lines)
        return {name: value.strip("'") for name, value in given.items()}

    def _run(self, command: list[str], timeout: float) -> str:
        environment = {**os.environ, **self.variables(), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode:
            raise RuntimeError(done.stdout[-2_000:] + done.stderr[-3_000:])
        return done.stdout.strip()

    def parts(self) -> dict[int, str]:
        """The processes that can be killed, by name."""
        found: dict[int, str] = {}
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                found[child.pid] = part_of(" ".join(child.cmdline()))
            except psutil.NoSuchProcess:
                continue
        return {pid: name for pid, name in found.items() if name}

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()


PARTS = {
    "deploy.master.Master": "spark-master",
    "deploy.worker.Worker": "spark-worker",
    "CoarseGrainedExecutorBackend": "executor",
    "pyspark.daemon": "python-worker",
    "run_job": "job",
    "S3Proxy": "store",
    "s3proxy": "store",
    "kafka.Kafka": "kafka",
    "daphne": "web",
    "manage.py ingest": "ingest",
    "manage.py connect": "connectors",
    "manage.py publish": "publisher",
    "-A webapp.config worker": "worker",
    "-A webapp.config beat": "beat",
    "valkey-server": "valkey",
    "postgres -D": "postgres",
}


def part_of(command: str) -> str:
    return next((name for text, name in PARTS.items() if text in command), "")


def row(sender: int, n: int) -> dict[str, object]:
    return {"entity": f"e{sender}-{n % 20}", "t": 5 * n, "x": float(n // 20 % 4), "y": 1.0}


class Sender(threading.Thread):
    """Posts deliveries until `stopping`, each until it is answered."""

    def __init__(self, number: int, ports: list[int], token: str, stopping: threading.Event) -> None:
        super().__init__(daemon=True)
        self.number, self.ports, self.token, self.stopping = number, ports, token, stopping
        self.sent, self.tries, self.refused = 0, 0, Counter[str]()

    def run(self) -> None:
        while not self.stopping.is_set():
            body = "".join(json.dumps(row(self.number, self.sent * ROWS + i)) + "\n" for i in range(ROWS)).encode()
            key, tries = f"{self.number}-{self.sent}", 0
            while not self._post(self.ports[(self.number + tries) % len(self.ports)], key, body):
                tries += 1
                time.sleep(0.2)
            self.sent += 1
            self.tries += tries + 1

    def _post(self, port: int, key: str, body: bytes) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        try:
            connection.request("POST", "/api/v1/feeds/yard/events", body, headers)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            self.refused[type(error).__name__] += 1
            return False
        finally:
            connection.close()
        if status != http.HTTPStatus.ACCEPTED:
            self.refused[str(status)] += 1
        return status == http.HTTPStatus.ACCEPTED


class Writer(threading.Thread):
    """Writes rows to the topic until `stopping`; the broker has each of them once,
    even when a process dies."""

    def __init__(self, broker: dict[str, Any], stopping: threading.Event) -> None:
        super().__init__(daemon=True)
        self.stopping, self.sent = stopping, 0
        self._producer = Producer({**broker, "enable.idempotence": True, "delivery.timeout.ms": int(SETTLES_S * 1000)})

    def run(self) -> None:
        while not self.stopping.wait(WRITES_S):
            for n in range(self.sent, self.sent + ROWS):
                given = row(9, n)
                self._producer.produce("rows", json.dumps(given), str(given["entity"]))
            self.sent += ROWS
            while self._producer.flush(ANSWERS_S):
                pass


class Pace(threading.Thread):
    """How long the answers made no progress: the seconds between two moments at which further rows
    of a feed were in the stored answers."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(daemon=True)
        self.database, self.stopping = cluster.variables()["DATABASE_URL"], threading.Event()
        self.pauses: dict[str, list[float]] = {}

    def run(self) -> None:
        moved: dict[str, tuple[int, float]] = {}
        while not self.stopping.is_set():
            # The server may be killed at any time.
            with suppress(psycopg2.Error), closing(psycopg2.connect(self.database, connect_timeout=2)) as connection:
                connection.autocommit = True
                while not self.stopping.wait(0.2):
                    with connection.cursor() as cursor:
                        cursor.execute(POSITIONS)
                        for feed, last_seq in cursor.fetchall():
                            before, at = moved.get(feed, (last_seq, time.monotonic()))
                            if last_seq > before or feed not in moved:
                                self.pauses.setdefault(feed, []).append(time.monotonic() - at)
                                moved[feed] = (last_seq, time.monotonic())
            self.stopping.wait(0.2)

    def verdict(self) -> str:
        self.stopping.set()
        self.join()
        found = []
        for feed, pauses in sorted(self.pauses.items()):
            longest = ", ".join(f"{pause:.0f}" for pause in sorted(pauses, reverse=True)[:5])
            still = sum(pause for pause in pauses if pause > STILL_S)
            found.append(f"{feed}: longest {longest} s; {still:.0f} s in pauses of more than {STILL_S:.0f} s")
        return "; ".join(found)


@contextmanager
def running(var: Path, port: int) -> Iterator[Cluster]:
    cluster = Cluster(var, port)
    try:
        yield cluster
    finally:
        cluster.stop()


class Load:
    """Rows sent by HTTP and by Kafka while the block runs; all of them are
    stored when it has ended."""

    def __init__(self, cluster: Cluster, ports: list[int], say: Say) -> None:
        self.cluster, self.say = cluster, say
        # Kept open: its request ends with it.
        admin = AdminClient(cluster.kafka)
        for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in ("rows", "answers")]).values():
            made.result(ANSWERS_S)
        token = cluster.python(PREPARE.replace("SERVERS", cluster.kafka["bootstrap.servers"])).splitlines()[-1]
        self.stopping = threading.Event()
        self.senders = [Sender(number, ports, token, self.stopping) for number in range(2)]
        self.writer = Writer(cluster.kafka, self.stopping)
        for thread in (*self.senders, self.writer):
            thread.start()
        settle(cluster, lambda found: all(found[name]["done"] > 0 for name in ("yard", "dock")), say)

    def end(self) -> None:
        """Stops sending, and waits until all rows are evaluated."""
        self.stopping.set()
        for thread in (*self.senders, self.writer):
            thread.join(SETTLES_S)
            assert not thread.is_alive(), "a delivery is not answered"
        deliveries, tries = sum(one.sent for one in self.senders), sum(one.tries for one in self.senders)
        rows = {"yard": ROWS * deliveries, "dock": self.writer.sent}
        refused = dict(self.senders[0].refused + self.senders[1].refused)
        self.say(f"{rows['yard']:,} rows posted in {deliveries} deliveries, {tries} tries; refused: {refused}; {rows['dock']:,} rows by Kafka")

        def settled(found: Status) -> bool:
            arrived = [found[name][what] == rows[name] for name in rows for what in ("received", "log", "done")]
            return all(arrived) and found["dock"]["unsent"] == 0

        settle(self.cluster, settled, self.say)

    def verdict(self) -> str:
        """The output of `audit`, and whether the topic has the stored answers."""
        audited = self.cluster.manage("audit", "yard", "dock")
        here = [path for path in (self.cluster.var / "checkpoints").glob("*/*") if not path.parent.name.startswith(".")]
        assert not here, f"the machine of the job holds states: {here}"
        held, stored = last_values(self.cluster.kafka, "answers"), json.loads(self.cluster.python(STORED))
        assert held == stored, f"{len(held)} answers in the topic, {len(stored)} stored"
        self.say(f"{audited}\nthe topic holds the {len(stored)} answers that are stored")
        return audited


def last_values(broker: dict[str, Any], topic: str) -> dict[str, Any]:
    """The `end` of each answer for a reader that keeps the last record of each key."""
    found: dict[str, Any] = {}
    for message in messages_of(broker, topic, PARTITIONS):
        if message.value() is None:
            found.pop(message.key().decode(), None)
        else:
            found[message.key().decode()] = json.loads(message.value())["end"]
    return found


def drive(seconds: float, var: Path, say: Say, port: int = 8970, seed: int = 1) -> str:
    """The output of the audit after this time."""
    chance, killed = random.Random(seed), Counter[str]()
    with running(var, port) as cluster:
        load = Load(cluster, cluster.wait_ready(), say)
        say("rows are evaluated: now processes are killed")
        pace = Pace(cluster)
        pace.start()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            time.sleep(BETWEEN_S * chance.uniform(0.5, 1.5))
            parts = cluster.parts()
            # The kind is chosen first: there are many processes of some kinds.
            kind = chance.choice(sorted(set(parts.values())))
            pid = chance.choice(sorted(pid for pid, name in parts.items() if name == kind))
            try:
                os.kill(pid, signal.SIGKILL)
                killed[kind] += 1
            except ProcessLookupError:
                continue
        say(f"{sum(killed.values())} killed: {dict(sorted(killed.items()))}")
        load.end()
        say(f"answers stood still: {pace.verdict()}")
        return load.verdict()


def scale(var: Path, say: Say, port: int = 8970) -> str:
    """The output of the audit after a fifth Spark worker has joined while
    the job ran, and left again."""
    with running(var, port) as cluster:
        load = Load(cluster, cluster.wait_ready(), say)
        job = cluster.python(STANDING_PID)
        wait_for_places(cluster, 4, say)
        environment = {**os.environ, "VEDETTE_VAR": str(var)}
        joined = subprocess.Popen([sys.executable, "-m", "webapp.platform.cluster", "--join"], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
        try:
            wait_for_places(cluster, 5, say)
            time.sleep(10 * BETWEEN_S)
        finally:
            joined.terminate()
            joined.wait(60)
        wait_for_places(cluster, 4, say)
        time.sleep(10 * BETWEEN_S)
        assert cluster.python(STANDING_PID) == job, "the job was started again"
        load.end()
        return load.verdict()


STANDING_PID = """
import django; django.setup()
from webapp.jobs.models import Job
print(*Job.objects.values_list("epoch", "pid").get(name="main"))
"""
PLACED = re.compile(r"yard: partitions are at (.*)$", re.M)


def wait_for_places(cluster: Cluster, executors: int, say: Say) -> None:
    """Waits until the job reports that a feed's partitions are at this many executors."""
    give_up = time.monotonic() + SETTLES_S
    while True:
        said = PLACED.findall((cluster.var / "log" / "job-main.log").read_text(errors="replace"))
        if said and said[-1].count("executor_") == executors:
            say(f"partitions are at {said[-1]}")
            return
        assert time.monotonic() < give_up, said[-1:]
        time.sleep(0.5)


def settle(cluster: Cluster, done: Callable[[Status], bool], say: Say) -> None:
    """Waits until the job has reached this point."""
    give_up, before = time.monotonic() + SETTLES_S, ""
    while time.monotonic() < give_up:
        try:
            said = cluster.python(STATUS)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            said = f"? {str(error)[-200:]}"
        if said != before:
            say(said)
            before = said
        if said.startswith("{") and done(json.loads(said)):
            return
        time.sleep(1)
    raise AssertionError(f"it did not settle: {before}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.cluster")
    parser.add_argument("seconds", nargs="?", type=float, default=20.0, help="duration of the killing of processes")
    parser.add_argument("seed", nargs="?", type=int, default=1, help="seed of the choice of processes")
    parser.add_argument("--scale", action="store_true", help="no process is killed: a fifth Spark worker joins and leaves")
    parser.add_argument("--port", type=int, default=8970, help="of the first web server")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="vedette-cluster-"))
    folder.chmod(0o711)
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True)

    say(f"everything lies in {folder}")
    if options.scale:
        scale(folder, say, options.port)
    else:
        drive(options.seconds, folder, say, options.port, options.seed)


if __name__ == "__main__":
    main()
