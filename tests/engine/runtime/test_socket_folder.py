"""The sockets between JVM and Python are among a job's own files, which its next start clears."""

import os
import socket
import tempfile
from pathlib import Path

import pytest

from engine.runtime.spark import local_cluster, sockets_in

KEY = "spark.python.unix.domain.socket.dir"
NAME = ".01234567-89ab-cdef-0123-456789abcdef.sock"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_WORKER_DIR", "")


@pytest.mark.parametrize("length", [1, 30, 63, 200])
def test_a_socket_can_be_made_and_is_removed_at_the_next_start(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:  # pytest's own folders have long paths
        monkeypatch.setattr(tempfile, "tempdir", short)
        folder = Path(short) / ("j" * length)
        found = Path(local_cluster(2, folder)[1][KEY])
        assert found.is_relative_to(folder if length < 30 else short) and found.stat().st_mode & 0o77 == 0
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.fspath(found / NAME))
        assert sockets_in(folder) == {KEY: str(found)} and list(found.iterdir()) == []


def test_two_jobs_have_two_folders(tmp_path: Path) -> None:
    assert len({sockets_in(tmp_path / ("j" * 100 + name))[KEY] for name in "ab"}) == 2
