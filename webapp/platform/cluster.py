"""The processes of several machines on this one, with one command:
`python -m webapp.platform.cluster [--feeds] [--verbose]` (`make cluster`).

The form of `docker/compose.yaml` without Docker: PostgreSQL, Valkey, Kafka, a store of S3's
protocol for the logs, a Spark master with four workers, and two each of the processes that accept
rows: web servers and `manage.py ingest`. A killed process is restarted. With `--join` it is one
more Spark worker for the cluster that runs on the same VEDETTE_VAR.
"""

import argparse
import os
import shlex
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from webapp.platform import demo
from webapp.platform.folders import PortReservation, kept_port, kept_secret, next_free_port, package_folder, var_folder
from webapp.platform.health import healthy
from webapp.platform.java import JavaError
from webapp.platform.kafka import KafkaServer, KafkaServerError
from webapp.platform.object_store import ObjectStore, ObjectStoreError
from webapp.platform.postgres import EmbeddedPostgres, PostgresError
from webapp.platform.processes import Process, ProcessManager, StartError
from webapp.platform.redis import EmbeddedRedis, RedisError

WORKERS = 4
SETTINGS = "spark.conf"
NOT_FOR_SPARK = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "VEDETTE_SECRETS_KEYS", "VEDETTE_PUSH_KEY", "VEDETTE_LOG_STORE")
"""Spark's own processes have neither the database nor keys: a task contains the parts of the log
that it reads."""


class SparkCluster:
    """Spark's own master and workers, each a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.secret = kept_secret(folder / "secret")
        self._reservation: PortReservation = kept_port(folder / "port")
        self.port = self._reservation.port

    @property
    def url(self) -> str:
        """For VEDETTE_SPARK_MASTER."""
        return f"spark://127.0.0.1:{self.port}"

    def master(self) -> Process:
        """A master that was killed recovers its workers and jobs."""
        return self._process("spark-master", "master.Master", "--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0")

    def worker(self, number: int) -> Process:
        """A worker that ends with the cluster."""
        name = f"worker-{number}"
        return self._process(f"spark-{name}", "worker.Worker", *worker_arguments(self.folder / name, self.url))

    def _process(self, name: str, program: str, *arguments: str) -> Process:
        command = spark_command(self.folder, program, *arguments)
        return Process(name, command, before_start=self._prepare, environment=spark_variables())

    def _prepare(self) -> None:
        settings = {
            "spark.authenticate": "true",
            "spark.authenticate.secret": self.secret,
            "spark.network.crypto.enabled": "true",
            "spark.master.rest.enabled": "false",
            "spark.ui.killEnabled": "false",
            "spark.worker.cleanup.enabled": "true",
            "spark.deploy.recoveryMode": "FILESYSTEM",
            "spark.deploy.recoveryDirectory": str(self.folder / "recovery"),
            "spark.worker.timeout": "10",
        }
        path = self.folder / SETTINGS
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        self._reservation.release()


def spark_command(folder: Path, program: str, *arguments: str) -> tuple[str, ...]:
    """One of Spark's own programs with the settings in `folder`."""
    return (str(_spark() / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", "--properties-file", str(folder / SETTINGS), *arguments)


def spark_variables() -> Mapping[str, str]:
    """The variables that differ for Spark's own processes."""
    return {**dict.fromkeys(NOT_FOR_SPARK, ""), "SPARK_HOME": str(_spark()), "SPARK_DAEMON_MEMORY": "256m"}


def worker_arguments(folder: Path, master: str) -> tuple[str, ...]:
    """One executor's worth: a core and the memory for it."""
    return ("--host", "127.0.0.1", "--webui-port", "0", "--work-dir", str(folder), "--cores", "1", "--memory", "1g", master)


def _spark() -> Path:
    folder = package_folder("pyspark")
    assert folder is not None, "Spark is one of our packages"
    return folder


def join(var: Path) -> None:
    """Becomes one more worker of the cluster that runs on `var`."""
    try:
        lines = (var / "environment").read_text().splitlines()
        known = {name: "".join(shlex.split(value)) for name, _, value in (line.removeprefix("export ").partition("=") for line in lines)}
        master = urlsplit(known["VEDETTE_SPARK_MASTER"])
        # Without its master a worker would try again for minutes.
        socket.create_connection((master.hostname or "", master.port or 0), timeout=5).close()
    except (OSError, KeyError):
        sys.exit(f"No cluster runs on {var}: start it with make cluster, or set VEDETTE_VAR to its folder.")
    folder = var / "spark-cluster"
    command = spark_command(folder, "worker.Worker", *worker_arguments(folder / f"worker-joined-{os.getpid()}", known["VEDETTE_SPARK_MASTER"]))
    os.execve(command[0], command, {**os.environ, **known, **spark_variables()})


def processes(var: Path, spark: SparkCluster, ports: Sequence[int]) -> Iterator[Process]:
    """The processes that need PostgreSQL, Valkey, Kafka and the store."""
    yield spark.master()
    yield from map(spark.worker, range(1, WORKERS + 1))
    for process in demo.processes(var, ports[0], feeds=False):
        yield process
        if process.name == "ingest":
            # On the same folder it takes over when the first ends. Rows by
            # HTTP go to both web servers.
            yield replace(process, name="ingest-2")
    yield demo.web("web-2", ports[1])


def run(*, feeds: bool, verbose: bool) -> None:
    """Starts everything, prints the address, and stops everything at Ctrl-C. Raises StartError and
    the parts' own errors."""
    started, var = time.monotonic(), var_folder()
    first = next_free_port(int(os.environ.get("VEDETTE_PORT") or 8000))
    reservations = [first, next_free_port(first.port + 1)]
    ports = [reservation.port for reservation in reservations]
    postgres, redis = EmbeddedPostgres(var / "postgres"), EmbeddedRedis(var / "redis")
    store, kafka = ObjectStore(var / "store"), KafkaServer(var / "kafka")
    spark = SparkCluster(var / "spark-cluster")
    variables = {
        **demo.environment(var, port=ports[0], database_url=postgres.url, redis_url=redis.url),
        "VEDETTE_LOG_STORE": store.url,
        "VEDETTE_PLACEMENT": "executors",
        "VEDETTE_SPARK_MASTER": spark.url,
        "VEDETTE_SPARK_HOST": "127.0.0.1",
        "VEDETTE_SPARK_SECRET": spark.secret,
        "VEDETTE_PARTITIONS": str(2 * WORKERS),
        # Connectors reach the local broker.
        "VEDETTE_WEBHOOK_NETWORKS": os.environ.get("VEDETTE_WEBHOOK_NETWORKS") or "127.0.0.0/8",
    }
    owner = demo.owner_environment(postgres)
    demo.keep_environments(var, variables, owner)
    password = kept_secret(var / "analyst-password", 12)
    passwords = {"VEDETTE_DEMO_PASSWORD": password, "VEDETTE_DEMO_ADMIN_PASSWORD": kept_secret(var / "admin-password", 12)}
    with ProcessManager(var / "log", environment=variables, echo=verbose) as manager:
        try:
            for service in (postgres, redis, store, kafka):
                process = service.process()
                manager.start(process)
                manager.wait_ready(process.name, service.ready, timeout=60.0)
            demo.prepare(manager, owner=owner, passwords=passwords, feeds=feeds)
            for reservation in reservations:
                reservation.release()
            for process in processes(var, spark, ports):
                manager.start(process)
            for name, port in zip(("web", "web-2"), ports, strict=True):
                manager.wait_ready(name, lambda port=port: healthy(port), timeout=2 * demo.HEALTH_SECONDS)  # type: ignore[misc]
            if feeds:
                manager.start(Process("players", demo.manage("simulate", *demo.PLAYERS), restart="on-failure"))
        except StartError:
            if not manager.interrupted:
                raise
        else:
            demo.say(
                f"\n  The cluster is ready after {time.monotonic() - started:.0f} s:  http://127.0.0.1:{ports[0]}/ and http://127.0.0.1:{ports[1]}/"
            )
            demo.say(f"  Kafka: {kafka.url}")
            demo.say(f"  Log in as {demo.LOGIN} with {password}    Logs: {var / 'log'}    Stop: Ctrl-C\n")
        manager.serve()
        demo.say("Stopping ...")


def main(arguments: Sequence[str] | None = None) -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m webapp.platform.cluster", description="Runs Vedette as it runs on several machines.")
    parser.add_argument("--feeds", action="store_true", help="with the demo's feeds and players")
    parser.add_argument("--verbose", action="store_true", help="also show what the processes print")
    parser.add_argument("--join", action="store_true", help="add a Spark worker to the running cluster")
    options = parser.parse_args(arguments)
    if options.join:
        join(var_folder())
    with demo.only_one(var_folder()):
        try:
            run(feeds=options.feeds, verbose=options.verbose)
        except (StartError, PostgresError, RedisError, JavaError, KafkaServerError, ObjectStoreError) as error:
            sys.exit(f"\n{error}\n")


if __name__ == "__main__":
    main()
