"""The Python client (client/) against the running product: rows in, through a web server that
is killed, and answers out."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from vedette import Answer, Refused, Unavailable, Vedette

from tests.crash.world import World
from tests.webapp.answers import a_user
from webapp.accounts.models import Scope
from webapp.accounts.services import token_create
from webapp.detections.models import Detection
from webapp.feeds.models import DeadLetter, IngestCounter
from webapp.platform.folders import PortReservation
from webapp.platform.web_server import web_command

pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.slow]

ROUNDS = 3_000


@pytest.fixture
def plain_world(transactional_db: None, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A feed and two queries."""
    for name in ("VAR", "VEDETTE_LOG_STORE", "EVENT_LOG_ROOT", "CHECKPOINT_ROOT"):
        setattr(settings, name, getattr(settings, name))
    monkeypatch.setenv("VEDETTE_VAR", str(tmp_path))
    made = World(tmp_path)
    try:
        yield made
    finally:
        made.close()


class Web:
    """The web server, on a fixed port."""

    def __init__(self, world: World) -> None:
        reservation = PortReservation()
        reservation.release()
        self.world, self.port = world, reservation.port

    def start(self) -> subprocess.Popen[bytes]:
        return self.world.start(*web_command(self.port), name="web")


def walk(rounds: int, first: int) -> list[dict[str, Any]]:
    """An entity that enters and leaves the square again and again."""
    return [{"entity": "ada", "t": first + 1_000 * n, "x": 5.0 if n % 2 else 0.0, "y": 5.0} for n in range(rounds)]


def test_the_client_stores_rows_once_and_reads_answers(plain_world: World) -> None:
    world, web = plain_world, Web(plain_world)
    token = token_create(user=a_user(), name="program", scopes=[Scope.INGEST, Scope.READ]).text
    vedette = Vedette(f"http://127.0.0.1:{web.port}", token, retry_for=120)
    world.start_job()
    server = web.start()
    # The server is not running yet: the request is repeated until it is.
    frame = pd.DataFrame(
        {
            "entity": ["eve", "eve", "", None],
            "t": pd.to_datetime([1_000, 2_000, 3_000, None], unit="ms"),
            "x": [0.0, 5.0, 1.0, float("nan")],
            "y": [5.0, 5.0, 1.0, 2.0],
        }
    )
    receipt = vedette.feed("yard").send(frame, key="frame-1")
    assert (receipt.received, receipt.appended, receipt.dead) == (4, 2, 2)
    assert [letter["reason"] for letter in receipt.dead_letters] == ["missing_entity", "missing_entity"]
    again = vedette.feed("yard").send(frame, key="frame-1")
    assert (again.appended, IngestCounter.objects.get().received) == (2, 4)

    answers = vedette.answers("crossings", after=0, poll=0.05)
    followed: list[Answer] = []
    follower = threading.Thread(target=lambda: followed.extend(_until(answers, ROUNDS)), daemon=True)
    follower.start()
    rows = walk(ROUNDS, first=10_000)
    with vedette.feed("yard").writer() as writer:
        for n, row in enumerate(rows):
            writer.put(row)
            if n == ROUNDS // 2:
                server.kill()
                server.wait()
                server = web.start()
    assert (writer.receipt.appended, IngestCounter.objects.get().received) == (ROUNDS, ROUNDS + 4)
    # Beyond the lateness all answers are known.
    vedette.feed("yard").send([{"entity": "eve", "t": datetime.fromtimestamp(10_000 + ROUNDS, UTC), "x": 5, "y": 5}])
    world.wait_caught_up()
    follower.join(120)
    stored = Detection.objects.filter(query=world.crossings, weight__gt=0)
    found = vedette.answers(world.crossings.pk).frame()
    assert len(followed) == len({(one.id, one.weight) for one in followed}) >= ROUNDS
    assert set(found["id"]) == {bytes(key).hex() for key in stored.values_list("key", flat=True)}
    assert len(found) == stored.count() >= ROUNDS - 1 and found["start"].is_monotonic_increasing
    assert answers.position is not None and answers.position <= vedette.feed("yard").head()["head"]["outbox_seq"]
    assert DeadLetter.objects.count() == 2
    _what_is_refused(vedette, web)


def _until(answers: Any, count: int) -> Iterator[Answer]:
    for n, answer in enumerate(answers, 1):
        yield answer
        if n == count:
            return


def _what_is_refused(vedette: Vedette, web: Web) -> None:
    with pytest.raises(Refused, match="no query named 'nothing'"):
        vedette.answers("nothing")
    with pytest.raises(Refused) as refused:
        next(iter(vedette.answers("crossings", after=10**9)))
    assert (refused.value.status, refused.value.faults[0].pointer) == (400, "/after")
    with pytest.raises(Refused) as refused:
        Vedette(f"http://127.0.0.1:{web.port}", "vdt_wrong").feed("yard").send([{"entity": "a", "t": 1, "x": 1, "y": 1}])
    assert refused.value.status == 401
    with pytest.raises(Unavailable):
        Vedette("http://127.0.0.1:1", "vdt_wrong", retry_for=0.5).feed("yard").send([{"entity": "a", "t": 1}])
    with pytest.raises(ValueError, match="https://"):
        Vedette("vedette.example.org", "x")
