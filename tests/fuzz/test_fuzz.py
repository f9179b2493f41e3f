"""A sample of what `python -m tests.fuzz` sends: mutated uploads of every format and mutated
specifications, to the running product."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.fuzz import corpus
from tests.fuzz.campaign import Campaign, Memory, Sent, as_text, feed, kinds
from tests.fuzz.server import running
from webapp.platform.health import healthy
from webapp.platform.postgres import with_database

GROWTH_BYTES = 150_000_000
COUNT = 10
FILES = 3
"""Of each kind of file that becomes a feed: three requests each, and a process."""


pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Campaign]:
    """The running server."""
    monkeypatch.setenv("DATABASE_URL", with_database(os.environ["DATABASE_URL"], connection.settings_dict["NAME"]))
    monkeypatch.setenv("VEDETTE_VAR", str(tmp_path))
    with running() as made:
        made.threads = 1
        yield made


def test_no_input_causes_a_server_error_or_a_late_response(campaign: Campaign) -> None:
    for kind in kinds():
        campaign.run(kind, range(1 if kind in corpus.recordings() else 2), seed=-1)
    memory = Memory(campaign.process)
    memory.look()
    bad: dict[str, Any] = {}
    for kind in kinds():
        count = FILES if kind in corpus.recordings() else COUNT
        report = campaign.run(kind, range(count))
        memory.look()
        assert sum(report.statuses.values()) == count, report
        bad |= {str(report): report.bad[:3]} if report.bad else {}
    assert not bad
    assert memory.growth < GROWTH_BYTES, as_text(memory.growth)


def test_the_server_stays_quick_while_thousands_of_rules_are_checked(campaign: Campaign) -> None:
    rules = "\n".join(f"initiatedAt(f{n}(X)=true, T) :- happensAt(position(X), T)." for n in range(8_000))
    inputs = {"position": {"args": ["entity"]}}
    specification = {"family": "calculus", "version": 1, "program": rules, "window": "PT3M", "step": "PT1M", "inputs": inputs}
    body = json.dumps({"feed": feed(0), "specification": specification}).encode()
    sent = Sent("/api/v1/queries/check", body, {"Content-Type": "application/json"})
    slowest, asked = 0.0, 0
    with ThreadPoolExecutor(1) as pool:
        checking = pool.submit(campaign.send, sent)
        while not checking.done():
            started = time.monotonic()
            assert healthy(campaign.port)
            slowest, asked = max(slowest, time.monotonic() - started), asked + 1
            time.sleep(0.02)
    assert checking.result() in (200, 400) and asked >= 10
    assert slowest < 1.0, f"healthz took {slowest:.2f} s at most"
