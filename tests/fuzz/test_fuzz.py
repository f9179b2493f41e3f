"""A sample of what `python -m tests.fuzz` sends: mutated uploads of every format and mutated specifications, to the running product."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.fuzz.campaign import Memory, kinds, told
from tests.fuzz.server import running
from webapp.platform.postgres import with_database

GROWTH_BYTES = 150_000_000
COUNT = 20


@pytest.mark.services
@pytest.mark.django_db(transaction=True)
def test_whatever_is_sent_is_answered_soon_without_a_fault_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", with_database(os.environ["DATABASE_URL"], connection.settings_dict["NAME"]))
    monkeypatch.setenv("VEDETTE_VAR", str(tmp_path))
    with running() as campaign:
        campaign.threads = 1
        for kind in kinds():
            campaign.run(kind, 2, seed=-1)
        memory = Memory(campaign.process)
        memory.look()
        bad: dict[str, Any] = {}
        for kind in kinds():
            report = campaign.run(kind, COUNT)
            memory.look()
            assert sum(report.statuses.values()) == COUNT, report
            bad |= {str(report): report.bad[:3]} if report.bad else {}
    assert not bad
    assert memory.growth < GROWTH_BYTES, told(memory.growth)
