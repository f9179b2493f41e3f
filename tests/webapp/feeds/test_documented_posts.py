"""The curl commands of README.md and docs/ingest.md, as they are printed, on a real server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from webapp.accounts.services import token_create
from webapp.feeds.logs import event_log
from webapp.feeds.services import feed_create
from webapp.platform.folders import ROOT

pytestmark = [
    pytest.mark.services,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("pool_connections"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]
INGEST = (ROOT / "docs" / "ingest.md").read_text()
HERE = "http://127.0.0.1:8000"


def curls(page: str) -> list[str]:
    """The commands of the first block of the page that posts rows."""
    block = next(block for block in re.findall(r"```\w*\n(.*?)```", page, re.S) if "/events" in block)
    return [line for line in re.sub(r"\\\n\s*", " ", block).splitlines() if line.startswith("curl ")]


def answer_to(command: str, folder: Path, server: str, token: str) -> Any:
    assert HERE in command
    done = subprocess.run(
        ["sh", "-c", command.replace(HERE, server)], cwd=folder, env={"TOKEN": token, "PATH": "/usr/bin:/bin:/usr/local/bin"}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_the_readme_makes_a_feed_and_posts_rows(people: SimpleNamespace, live_server: Any, tmp_path: Path) -> None:
    token = token_create(user=people.owner, name="readme", scopes=["ingest", "read", "write"]).text
    (tmp_path / "feed.json").write_text('{"name": "strait", "crs": "geographic", "lateness": "PT10S", "columns": {"sog": "float"}}')
    (tmp_path / "rows.jsonl").write_text('{"entity": "ferry", "t": 1, "x": 10.9, "y": 54.1, "sog": 9.5}\n{"entity": "ferry", "t": 2}\n')
    make, post = curls((ROOT / "README.md").read_text())
    assert answer_to(make, tmp_path, live_server.url, token)["name"] == "strait"
    for is_repeated in (False, True):
        receipt = answer_to(post.replace("NAME", "strait"), tmp_path, live_server.url, token)
        assert (receipt["appended"], receipt["repeated"]) == (2, is_repeated)
    assert event_log("strait").end == (2, 2)


def test_the_example_of_ingest_is_answered_as_the_page_says(people: SimpleNamespace, live_server: Any, tmp_path: Path) -> None:
    feed_create(owner=people.owner, name="harbour", title="h", crs="geographic")
    token = token_create(user=people.owner, name="ingest", scopes=["ingest"]).text
    (tmp_path / "rows.csv").write_text("entity,t,x,y\na,3,1,1\nb,4,1,1\n,5,,\n")
    (post,) = curls(INGEST)
    receipt = answer_to(post, tmp_path, live_server.url, token)
    (shown,) = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", INGEST, re.S) if '"received"' in block)
    assert receipt.keys() == shown.keys()
    counts = ("received", "appended", "dead", "late", "repeated")
    assert [receipt[name] for name in counts] == [shown[name] for name in counts]
    assert [letter["reason"] for letter in receipt["dead_letters"]] == [letter["reason"] for letter in shown["dead_letters"]]
    assert receipt["dead_letters"][0].keys() == shown["dead_letters"][0].keys()
