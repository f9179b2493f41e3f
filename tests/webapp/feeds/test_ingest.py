"""HTTP ingest: the guarantee of a 202, permissions, the result for every row, and that crashes and
repetitions change nothing."""

import gzip
import json
import signal
import threading
import time
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from django.db import connections
from django.db.utils import OperationalError
from rest_framework.test import APIClient

from engine.failpoints import VARIABLE
from engine.model.events import DeadLetter as Letter
from engine.model.events import Reason, check_rows
from engine.model.messages import untranslated
from tests.webapp.conftest import at_each_place
from tests.webapp.forked import forked
from webapp.accounts.services import token_create
from webapp.feeds import ingest as service
from webapp.feeds.bodies import BODY_BYTES
from webapp.feeds.client import arrow_stream
from webapp.feeds.ingest import Delivery, Receipt, ingest, settle
from webapp.feeds.logs import event_log
from webapp.feeds.models import DeadLetter, Feed, IngestCounter, IngestReceipt

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("pool_connections")]


@pytest.fixture
def token(people: SimpleNamespace) -> str:
    return token_create(user=people.owner, name="source", scopes=["ingest"]).text


def post(token: str | None, body: bytes, content_type: str = "application/x-ndjson", feed: str = "yard", **headers: str) -> Any:
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return APIClient().generic("POST", f"/api/v1/feeds/{feed}/events", body, content_type, headers=headers)


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def times(feed: Feed) -> list[int]:
    return [t for table in event_log(feed.name).read() for t in table["t"].to_pylist()]


def counts(feed: Feed) -> tuple[int, int]:
    counter = IngestCounter.objects.get(feed=feed)
    return counter.received, counter.dead


GOOD = {"entity": "a", "t": 1, "x": 1.0, "y": 2.0}
BAD = {"entity": "a", "t": 2, "x": 1.0}


# -- rows and dead letters -------------------------------------------------------------------------


def test_good_rows_are_in_the_log_and_bad_ones_are_dead_letters_with_their_lines(feed: Feed, token: str) -> None:
    response = post(token, lines(GOOD) + b"{broken\n" + lines(BAD, {**GOOD, "t": 5, "speed": 3}))
    assert response.status_code == 202
    assert {**response.json(), "dead_letters": None} == {
        "received": 4, "appended": 2, "dead": 2, "late": 0, "first_seq": 0, "last_seq": 1, "dead_letters": None, "repeated": False,
    }  # fmt: skip
    assert [(letter["line"], letter["reason"]) for letter in response.json()["dead_letters"]] == [(2, "malformed"), (3, "half_position")]
    assert (times(feed), counts(feed)) == ([1, 5], (4, 2))
    kept = DeadLetter.objects.order_by("line")
    assert [(letter.line, letter.reason, letter.feed) for letter in kept] == [(2, "malformed", feed), (3, "half_position", feed)]
    assert kept[1].row["entity"] == "a"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/csv; charset=utf-8", b"entity,t,x,y,speed\na,1,1,2,3.5\nb,2,,,\n"),
        ("application/x-ndjson", b'{"entity":"a","t":1,"x":1,"y":2,"speed":3.5}\n\n{"entity":"b","t":2}'),
        (
            "application/vnd.apache.arrow.stream",
            arrow_stream(pa.table({"entity": ["a", "b"], "t": [1, 2], "x": [1, None], "y": [2, None], "speed": [3.5, None]})),
        ),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_all_formats_give_the_same_rows(feed: Feed, token: str, content_type: str, body: bytes, packed: bool) -> None:
    response = post(token, gzip.compress(body) if packed else body, content_type, **({"Content-Encoding": "gzip"} if packed else {}))
    assert (response.status_code, response.json()["appended"]) == (202, 2)
    rows = pa.concat_tables(event_log("yard").read()).select(["event", "entity", "t", "x", "y", "speed"]).to_pylist()
    assert [list(row.values()) for row in rows] == [["position", "a", 1, 1.0, 2.0, 3.5], ["position", "b", 2, None, None, None]]


def test_bodies_without_valid_rows_are_accepted(feed: Feed, token: str) -> None:
    assert post(token, b"").json() | {"x": 0} == {
        "received": 0, "appended": 0, "dead": 0, "late": 0, "first_seq": None, "last_seq": None, "dead_letters": [], "repeated": False, "x": 0,
    }  # fmt: skip
    assert post(token, b"nothing\n").json()["dead"] == 1
    assert (times(feed), counts(feed)) == ([], (1, 1))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (
            b"mmsi,ts,lon,lat",
            [
                "no column entity and no column t",
                "'mmsi', 'ts', 'lon', 'lat'",
                "separated by commas",
                "Name the columns as the feed does: event, entity, t",
            ],
        ),
        (b"entity;t;x;y", ["'entity;t;x;y'", "seems to be separated by semicolons"]),
        (b"entity\tt", ["separated by tabs"]),
        (b"entity,time,x,y", ["There is no column t."]),
    ],
)
def test_a_csv_without_required_columns_is_refused_with_its_header(feed: Feed, token: str, header: bytes, expected: list[str]) -> None:
    response = post(token, header + b"\n1,2,3,4\n", "text/csv")
    assert response.status_code == 400
    (fault,) = response.json()["faults"]
    assert all(part in fault["message"] for part in expected), fault
    assert (times(feed), counts(feed)) == ([], (0, 0))


@pytest.mark.parametrize("text", [b"entity,t,x,y\na,1,1,2\nb,2,1,2\n", b"entity,t\r\na,1\r\n", b"entity,t,x,y\n0,0,0,0\n0,0,0,0\n"])
def test_a_csv_whose_line_breaks_curl_removed_is_refused_with_the_remedy(feed: Feed, token: str, text: bytes) -> None:
    response = post(token, text.replace(b"\r", b"").replace(b"\n", b""), "text/csv")
    assert response.status_code == 400
    assert "--data-binary" in response.json()["faults"][0]["message"]
    assert (times(feed), counts(feed)) == ([], (0, 0))


@pytest.mark.parametrize("between", [b"", b" "])
def test_objects_whose_line_breaks_curl_removed_are_a_dead_letter_with_the_remedy(feed: Feed, token: str, between: bytes) -> None:
    (dead,) = post(token, lines(GOOD, {**GOOD, "t": 2}).replace(b"\n", between)).json()["dead_letters"]
    assert "--data-binary" in dead["detail"]


@pytest.mark.parametrize("text", [b"entity,t,x,y", b'"entity","t"', b"entity,t,not_of_the_feed\n", b"\xef\xbb\xbfentity,t\r\n", b"\n"])
def test_a_text_without_rows_is_accepted(feed: Feed, token: str, text: bytes) -> None:
    response = post(token, text, "application/x-ndjson" if text == b"\n" else "text/csv")
    assert (response.status_code, response.json().get("received")) == (202, 0)


def test_an_arrow_stream_without_the_needed_columns_is_refused(feed: Feed, token: str) -> None:
    response = post(token, arrow_stream(pa.table({"mmsi": ["a"], "ts": [1]})), "application/vnd.apache.arrow.stream")
    assert (response.status_code, "'mmsi', 'ts'" in response.json()["faults"][0]["message"]) == (400, True)


def test_many_dead_letters_are_all_counted_and_summed_up(feed: Feed, token: str) -> None:
    response = post(token, b"x\n" * 1_500)
    assert (response.json()["dead"], len(response.json()["dead_letters"])) == (1_500, service.SHOWN)
    assert counts(feed) == (1_500, 1_500)
    assert DeadLetter.objects.count() == service.KEPT + 1
    assert DeadLetter.objects.latest("id").detail == "and 500 more rows of this delivery"


def test_values_that_json_or_postgres_cannot_hold_are_kept_as_text(feed: Feed, token: str) -> None:
    body = arrow_stream(pa.table({"entity": ["a\x00b", "c"], "t": [1, 2], "x": [float("nan"), float("inf")], "y": [0.0, 0.0]}))
    assert post(token, body, "application/vnd.apache.arrow.stream").json()["dead"] == 2
    assert post(token, b'{"entity":"\\ud800","t":1}\n').json()["dead"] == 1
    assert "\x00" not in json.dumps([letter.row for letter in DeadLetter.objects.all()])


def test_a_wall_clock_feed_refuses_only_future_rows(feed: Feed, token: str) -> None:
    now = time.time_ns() // 1_000_000
    body = lines({**GOOD, "t": now}, {**GOOD, "t": now + 86_400_000}, {**GOOD, "t": now + 200_000})
    assert post(token, body).json()["dead"] == 0
    Feed.objects.filter(pk=feed.pk).update(wall_clock=True, ahead=300_000)
    answer = post(token, body).json()
    assert (answer["appended"], [letter["reason"] for letter in answer["dead_letters"]]) == (2, ["future"])


# -- who may send what -----------------------------------------------------------------------------


def test_only_editors_of_the_feed_with_an_ingest_token_may_send(feed: Feed, people: SimpleNamespace) -> None:
    def status(user: Any, scopes: list[str]) -> int:
        return post(token_create(user=user, name="t", scopes=scopes).text, lines(GOOD)).status_code

    assert post(None, lines(GOOD)).status_code == post("vdt_wrong", lines(GOOD)).status_code == 401
    assert status(people.owner, ["read", "write"]) == 403
    assert status(people.viewer, ["ingest"]) == status(people.analyst, ["ingest"]) == 403
    assert status(people.stranger, ["ingest"]) == 404
    assert times(feed) == []
    assert status(people.operator, ["ingest"]) == status(people.owner, ["ingest"]) == 202
    good = token_create(user=people.owner, name="t", scopes=["ingest"]).text
    assert post(good, lines(GOOD), feed="none").status_code == 404


def test_bodies_that_are_too_large_or_of_another_type_are_refused(feed: Feed, token: str) -> None:
    assert post(token, b"x" * (BODY_BYTES + 1)).status_code == 413
    assert post(token, gzip.compress(b"\n" * 30_000_000), **{"Content-Encoding": "gzip"}).status_code == 413
    assert post(token, lines(GOOD), "image/png").status_code == 415
    assert post(token, lines(GOOD), **{"Content-Encoding": "br"}).status_code == 415
    assert post(token, b"no gzip", **{"Content-Encoding": "gzip"}).status_code == 400
    assert post(token, gzip.compress(lines(GOOD))[:-9], **{"Content-Encoding": "gzip"}).status_code == 400
    assert post(token, b"no arrow", "application/vnd.apache.arrow.stream").status_code == 400
    assert post(token, lines(GOOD), **{"Idempotency-Key": "k" * 201}).status_code == 400
    response = post(token, b"a,a\n1,2\n", "text/csv")
    assert (response.status_code, response.json()["faults"][0]["message"]) == (400, "Two columns have the same name: 'a'.")
    assert (times(feed), counts(feed)) == ([], (0, 0))


# -- idempotency -----------------------------------------------------------------------------------


def test_a_repeated_key_gets_the_same_receipt_and_appends_nothing(feed: Feed, token: str) -> None:
    first = post(token, lines(GOOD, BAD), **{"Idempotency-Key": "k"})
    post(token, lines({**GOOD, "t": 7}))
    again = post(token, lines(GOOD, BAD), **{"Idempotency-Key": "k"})
    assert again.json() == {**first.json(), "repeated": True}
    assert (times(feed), counts(feed)) == ([1, 7], (3, 1))


def test_a_repeated_key_of_dead_rows_alone_counts_once(feed: Feed, token: str) -> None:
    answers = [post(token, b"x\n", **{"Idempotency-Key": "k"}).json() for _ in range(2)]
    assert [answer["repeated"] for answer in answers] == [False, True]
    assert (counts(feed), DeadLetter.objects.count()) == ((1, 1), 1)


def test_a_key_with_another_body_is_refused(feed: Feed, token: str) -> None:
    post(token, lines(GOOD), **{"Idempotency-Key": "k"})
    assert post(token, lines({**GOOD, "t": 9}), **{"Idempotency-Key": "k"}).status_code == 422
    assert times(feed) == [1]


def test_one_key_from_many_at_once_is_appended_once(feed: Feed, token: str) -> None:
    answers: list[dict[str, Any]] = []

    def send() -> None:
        answers.append(post(token, lines(GOOD, BAD), **{"Idempotency-Key": "k"}).json())
        connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (times(feed), counts(feed), DeadLetter.objects.count()) == ([1], (2, 1), 1)
    assert {(answer["first_seq"], answer["last_seq"], answer["appended"], answer["dead"]) for answer in answers} == {(0, 0, 1, 1)}
    assert sum(not answer["repeated"] for answer in answers) == 1


def test_many_senders_at_once_are_all_counted(feed: Feed, token: str) -> None:
    def send(n: int) -> None:
        for i in range(5):
            post(token, lines({**GOOD, "entity": str(n), "t": i}) + b"bad\n")
        connections.close_all()

    threads = [threading.Thread(target=send, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(times(feed)), counts(feed), DeadLetter.objects.count()) == (40, (80, 40), 40)
    assert IngestCounter.objects.get(feed=feed).log_seq == 40


# -- outages ---------------------------------------------------------------------------------------


def test_during_outages_ingest_answers_503_and_recovers(log_form: str, feed: Feed, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def send() -> Any:
        return post(token, lines(GOOD, BAD), **{"Idempotency-Key": "k"})

    def no_database(*_: Any) -> None:
        raise OperationalError("the server closed the connection")

    for place in ("log.before_rename", "log.after_rename") if log_form == "folder" else ("log.before_order", "log.after_order"):
        monkeypatch.setenv(VARIABLE, f"{place}=raise")
        response = send()
        assert (response.status_code, response["Retry-After"]) == (503, "1")
        monkeypatch.delenv(VARIABLE)
    with monkeypatch.context() as patched:
        patched.setattr(service, "_keep", no_database)
        assert send().status_code == 503
    assert send().status_code == 202
    assert (times(feed), counts(feed), DeadLetter.objects.count()) == ([1], (2, 1), 1)


UNWRITTEN = {"log.before_rename", "log.before_order", "log.before_order_commit"}
"""Before these the rows are not in the log."""
WRITTEN = ("ingest.after_append", "ingest.before_settle_commit", "ingest.after_settle")


def ingest_pair() -> Receipt:
    """Two rows and a dead letter, always under one key."""
    yard = Feed.objects.get(name="yard")
    rows = check_rows(pa.table({"entity": ["a", "b"], "t": [1, 2]}), yard.engine_feed())[0]
    return ingest(yard, Delivery(rows, [Letter(Reason.MALFORMED, untranslated("bad"), None, 3)], "test", "k", "digest"))


@at_each_place(
    folder=("log.before_rename", "log.after_rename", *WRITTEN), store=("log.before_order", "log.before_order_commit", "log.after_order", *WRITTEN)
)
def test_a_key_sent_again_after_a_kill_is_stored_once(log_form: str, feed: Feed, place: str) -> None:
    assert forked(ingest_pair, failpoints=f"{place}=kill") == (-signal.SIGKILL, None)
    again = forked(ingest_pair).result
    assert (again.first_seq, again.last_seq, again.appended, again.dead, again.repeated) == (0, 1, 2, 1, place not in UNWRITTEN)
    assert (times(feed), counts(feed), DeadLetter.objects.count(), IngestReceipt.objects.count()) == ([1, 2], (3, 1), 1, 1)


@at_each_place(folder=("log.after_rename", *WRITTEN), store=("log.after_order", *WRITTEN))
def test_killed_after_the_append_and_never_repeated_everything_is_still_counted(log_form: str, feed: Feed, place: str) -> None:
    forked(ingest_pair, failpoints=f"{place}=kill")
    settle(feed)
    assert (times(feed), counts(feed), DeadLetter.objects.count()) == ([1, 2], (3, 1), 1)


def test_settling_is_idempotent_and_heartbeats_are_not_counted(feed: Feed) -> None:
    schema = pa.schema([("event", pa.string()), ("entity", pa.string()), ("t", pa.int64())])
    log = event_log(feed.name)
    log.append(pa.Table.from_pylist([{"event": "$heartbeat", "entity": "$heartbeat", "t": 5}], schema))
    rows = pa.Table.from_pylist([{"event": "position", "entity": "a", "t": 6}], schema)
    ingest(feed, Delivery(rows, [Letter(Reason.MALFORMED, untranslated("bad"))], "test"))
    assert settle(feed) == settle(feed) == 2
    assert counts(feed) == (2, 1)
