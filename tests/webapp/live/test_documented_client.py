"""The client of docs/api.md, run unchanged against the real web server and publisher."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.webapp.answers import a_head
from tests.webapp.live.pages import store
from tests.webapp.live.test_served_sockets import Served, served  # noqa: F401  the fixture
from webapp.accounts.services import token_create
from webapp.detections.partitions import partitions_ensure, span_of
from webapp.platform.folders import ROOT
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]


@contextmanager
def client(folder: Path, port: int, token: str) -> Iterator[subprocess.Popen[str]]:
    text = (ROOT / "docs" / "api.md").read_text().split("### A complete client")[1]
    (folder / "follow.py").write_text(re.findall(r"```python\n(.*?)```", text, re.S)[0])
    command = [sys.executable, "follow.py", f"http://127.0.0.1:{port}", "yard"]
    environment = {**os.environ, "VEDETTE_TOKEN": token}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_the_documented_client_gets_a_snapshot_and_every_change(
    served: Served,  # noqa: F811  a fixture
    people: SimpleNamespace,
    feed: Any,
    query: Query,
    tmp_path: Path,
) -> None:
    a_head(feed)
    partitions_ensure([span_of(10)])
    store(feed, query, "a", 10)
    token = token_create(user=people.viewer, name="follower", scopes=["read"]).text
    with client(tmp_path, served.port, token) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "holds 1\n"
        store(feed, query, "b", 20)
        store(feed, query, "a", 10, 15)
        store(feed, query, "b", 20, weight=0)
        said = [follower.stdout.readline().strip() for _ in range(3)]
        assert said == ["now in b 20 None", "now in a 10 15", "not in b 20"]


def test_the_documented_client_reports_an_invalid_token(
    served: Served,  # noqa: F811  a fixture
    people: SimpleNamespace,
    feed: Any,
    tmp_path: Path,
) -> None:
    with client(tmp_path, served.port, token_create(user=people.stranger, name="x", scopes=["read"]).text) as follower:
        said, _ = follower.communicate(timeout=30)
        assert "404" in said
