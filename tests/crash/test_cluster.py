"""`make cluster` whose processes are killed at random is exact:
`CLUSTER_SECONDS=20 make test PYTEST=tests/crash/test_cluster.py`.

Not in every run of the tests: some forty processes start, which takes minutes on two cores.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from tests.crash.cluster import drive, part_of, scale
from webapp.platform.cluster import SparkCluster, processes
from webapp.platform.folders import ROOT

SECONDS = "CLUSTER_SECONDS"
asked_for = pytest.mark.skipif(SECONDS not in os.environ, reason=f"takes minutes: set {SECONDS} to how long processes are killed")
STARTED_FIRST = {"postgres", "valkey", "kafka", "store"}


def test_the_cluster_runs_the_commands_of_the_containers(tmp_path: Path) -> None:
    started = [process.name for process in processes(tmp_path, SparkCluster(tmp_path), [8001, 8002])]
    assert len(set(started)) == len(started)
    services = set(yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())["services"]) - {"migrate"}
    workers = {name for name in started if name.startswith("spark-worker-")}
    assert len(workers) == 4
    assert {*started} - workers | {"spark-worker"} | STARTED_FIRST == services


def test_any_process_of_the_cluster_can_be_killed(tmp_path: Path) -> None:
    commands = [process.command for process in processes(tmp_path, SparkCluster(tmp_path), [8001, 8002])]
    assert [command for command in commands if not part_of(" ".join(command))] == []


@asked_for
@pytest.mark.services
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_answers_are_exact_after_kills_of_any_process(tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    assert drive(float(os.environ[SECONDS]), tmp_path, print).count(": exact") == 2


@asked_for
@pytest.mark.services
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_new_worker_gets_partitions_and_returns_them_when_it_leaves(tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    assert scale(tmp_path, print).count(": exact") == 2
