"""`make cluster`: tests that do not start it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from webapp.platform.cluster import join


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize("environment", [None, "export VEDETTE_VAR=/nowhere\n", f"export VEDETTE_SPARK_MASTER=spark://127.0.0.1:{closed_port()}\n"])
def test_a_worker_joins_only_a_cluster_that_runs(environment: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo, or a cluster that has ended, leaves such a file too."""
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("a worker starts"))
    if environment is not None:
        (tmp_path / "environment").write_text(environment)
    with pytest.raises(SystemExit, match=f"No cluster runs on {tmp_path}: start it with make cluster"):
        join(tmp_path)
