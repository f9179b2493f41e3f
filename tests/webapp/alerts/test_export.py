"""The alerts that the desk's filters leave, as files."""

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from tests.examples import examples
from tests.webapp.alerts.test_lifecycle import crossing, record
from tests.webapp.alerts.test_routing import quiet
from tests.webapp.conftest import BORDER
from webapp.alerts.deliveries import notifications_plan
from webapp.alerts.handling import Decision, alert_comment, alerts_decide
from webapp.alerts.models import Alert, Step
from webapp.alerts.rules import rule_save
from webapp.audit.models import Entry
from webapp.detections.models import Detection
from webapp.detections.partitions import partitions_ensure, span_of
from webapp.feeds.models import Feed
from webapp.feeds.services import feed_create
from webapp.queries.models import Query
from webapp.queries.services import query_register

pytestmark = [pytest.mark.services, pytest.mark.django_db]
BEGUN = 1_700_000_000_000
ASKED = {
    "state": ["new", "resolved", "acknowledged"],
    "severity": ["low", "critical"],
    "search": ["car", "yard 1", "In and"],
    "feed": ["yard", "dock", "nowhere"],
    "entity": ["car 1", "nobody"],
    "assignee": ["me", "nobody", "analyst"],
    "over": ["true", "false"],
    "muted": ["false", "true"],
    "opened_from": ["2026-11-01T00:00:00Z"],
    "from": [str(BEGUN + 3)],
    "order": ["newest", "oldest", "severity", "event", "-event"],
}


@pytest.fixture
def desk(query: Query, people: SimpleNamespace) -> Query:
    """Alerts in all states and severities, of two feeds of the team, and of another team."""
    dock = feed_create(owner=people.owner, name="dock", title="Dock", crs="planar", time="ticks", team=people.harbour)
    beside = query_register(owner=people.owner, feed=dock, name="At the dock", specification=BORDER, alert_kinds=["in"], team=people.harbour)
    apart = feed_create(owner=people.stranger, name="apart", title="Apart", crs="planar", time="ms", team=people.elsewhere)
    hidden = query_register(owner=people.stranger, feed=apart, name="Hidden", specification=BORDER, alert_kinds=["in"], team=people.elsewhere)
    for of_it in (query, beside, hidden):
        record(of_it, *(crossing(of_it, "in", f"car {n % 4}", BEGUN + n % 5) for n in range(8)))
    for n, alert in enumerate(Alert.objects.order_by("pk")):
        state = ["new", "resolved", "acknowledged"][n % 3]
        opened_at = datetime(2026, 10 + n % 2, 20, tzinfo=UTC)
        severity, assignee = "critical" if n % 4 == 0 else "low", people.analyst if n % 5 == 0 else None
        over_at = opened_at if n % 2 else None
        Alert.objects.filter(pk=alert.pk).update(state=state, severity=severity, assignee=assignee, opened_at=opened_at, over_at=over_at)
    return query


def listed(client: APIClient, asked: str) -> list[dict[str, Any]]:
    """All pages of the list."""
    rows, address = [], f"/api/v1/alerts/?page_size=3&{asked}"
    while address:
        page = client.get(address).json()
        rows += page["results"]
        address = page["next"]
    return rows


def exported(client: APIClient, kind: str, asked: str = "") -> str:
    answer = client.get(f"/api/v1/alerts/export?format={kind}&{asked}")
    assert answer.status_code == 200 and f'"alerts.{kind}"' in answer["Content-Disposition"]
    return b"".join(answer.streaming_content).decode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60), deadline=None)
@given(st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in ASKED.items()}))
def test_a_file_has_the_alerts_of_the_filtered_list_in_its_order(
    desk: Query, people: SimpleNamespace, client_of: Callable[..., APIClient], asked: dict[str, str]
) -> None:
    for person in (people.analyst, people.viewer, people.stranger):
        client = client_of(person)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("webapp.alerts.export.AT_ONCE", 3)
            # Of hundreds of examples; what is limited are requests of people.
            patched.setattr("webapp.config.throttling.PerAction.allow_request", lambda *_: True)
            if "feed" in asked and not Feed.objects.visible_to(person).filter(name=asked["feed"]).exists():
                assert {client.get(f"/api/v1/alerts/{kind}?{urlencode(asked)}").status_code for kind in ("", "export")} == {400}
                continue
            rows = [json.loads(line) for line in exported(client, "jsonl", urlencode(asked)).splitlines()]
        expected = listed(client, urlencode(asked))
        assert [row["id"] for row in rows] == [row["id"] for row in expected]
        assert [{name: row[name] for name in one} for row, one in zip(rows, expected, strict=True)] == expected


def test_every_format_names_the_answer_of_an_alert(desk: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.viewer)
    answers = [row["detection"] for row in listed(client, "order=newest")]
    assert [row["detection"] for row in csv.DictReader(io.StringIO(exported(client, "csv", "order=newest")))] == answers
    found = json.loads(exported(client, "geojson", "order=newest"))["features"]
    assert [one["properties"]["detection"] for one in found] == answers


def test_alerts_of_another_team_are_in_no_file(desk: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    rows = [json.loads(line) for line in exported(client_of(people.viewer), "jsonl").splitlines()]
    assert {row["feed"] for row in rows} == {"yard", "dock"} and len(rows) == 16
    hidden = Query.objects.get(name="Hidden")
    for kind in ("jsonl", "csv", "geojson"):
        for asked in (f"query={hidden.pk}", "search=Hidden"):
            assert "Hidden" not in exported(client_of(people.viewer), kind, asked)
    assert "Hidden" in exported(client_of(people.stranger), "csv") and "In and out" not in exported(client_of(people.stranger), "csv")
    assert client_of(None).get("/api/v1/alerts/export").status_code in (401, 403)


def test_a_table_says_who_did_what_when_and_for_whom(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    quiet(people.operator)
    rule_save(user=people.operator, name="Night; shift", people=[people.operator])
    rule_save(user=people.owner, name="of the owner", people=[people.operator])
    record(query, crossing(query, "in", "Grün, 1", BEGUN))
    notifications_plan()
    alert = Alert.objects.get()
    alerts_decide(alerts=[alert], decision=Decision(Step.ACKNOWLEDGED, people.analyst, "On it"))
    alert_comment(alert=Alert.objects.get(), user=people.analyst, text="A boat")
    alerts_decide(alerts=[Alert.objects.get()], decision=Decision(Step.RESOLVED, people.operator))
    (row,) = csv.DictReader(io.StringIO(exported(client_of(people.operator), "csv")))
    known = {
        name: row[name] for name in ("feed", "query_name", "entities", "start", "start_at", "end_at", "acknowledged_by", "resolved_by", "comments")
    }
    assert known == {
        "feed": "yard",
        "query_name": "In and out",
        "entities": '["Grün, 1"]',
        "start": str(BEGUN),
        "start_at": "2023-11-14T22:13:20Z",
        "end_at": "",
        "acknowledged_by": "analyst",
        "resolved_by": "operator",
        "comments": "2",
    }
    assert json.loads(row["regions"]) == ["square"]
    assert json.loads(row["rules"]) == ["Night; shift"], "the owner's rule is not the operator's to see"
    for moment in ("opened_at", "acknowledged_at", "resolved_at"):
        assert timezone.now() - datetime.fromisoformat(row[moment]) < timedelta(minutes=5), "with its zone"


def test_times_that_are_no_dates_stay_numbers(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    record(query, crossing(query, "in", "far", 10**17))
    assert json.loads(exported(client_of(people.viewer), "jsonl"))["start_at"] is None


def test_no_cell_is_a_formula(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    Query.objects.filter(pk=query.pk).update(name="=HYPERLINK(1)")
    record(query, crossing(query, "in", "=1+1", 10))
    Alert.objects.update(value="@cmd", kind="+in")
    (row,) = csv.DictReader(io.StringIO(exported(client_of(people.viewer), "csv")))
    assert (row["query_name"], row["value"], row["kind"], row["entities"]) == ("'=HYPERLINK(1)", "'@cmd", "'+in", '["=1+1"]')


def test_on_a_map_an_alert_is_where_its_evidence_is(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    record(query, crossing(query, "in", "a", 10), crossing(query, "in", "b", 20))
    partitions_ensure([span_of(10)])
    known, bare = Alert.objects.order_by("start")
    answer = {"feed": query.feed, "query": query, "version": 1, "kind": "in", "entities": ["a"], "seq": 1, "detected_at": 5}
    evidence = [{"variable": None, "entity": "a", "t": 10, "x": 1.5, "y": 2.5, "seq": 1}]
    Detection.objects.create(key=bytes(known.detection_key), start=10, end=10, evidence=evidence, **answer)
    found = {one["id"]: one for one in json.loads(exported(client_of(people.viewer), "geojson"))["features"]}
    assert found[known.pk]["geometry"] == {"type": "Point", "coordinates": [1.5, 2.5]}
    assert found[bare.pk]["geometry"] is None, "its answer is not kept any more"
    assert found[known.pk]["properties"]["query_name"] == "In and out"


def test_a_file_is_bounded_and_recorded(
    query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    record(query, *(crossing(query, "in", f"car {n}", n) for n in range(4)))
    monkeypatch.setattr("webapp.alerts.export.AT_ONCE", 2)
    client = client_of(people.viewer)
    for most, name in ((3, "alerts-first-3.csv"), (4, "alerts.csv")):
        monkeypatch.setattr("webapp.alerts.api.DOWNLOAD_ROWS", most)
        answer = client.get("/api/v1/alerts/export?order=oldest")
        assert f'"{name}"' in answer["Content-Disposition"]
        assert len(b"".join(answer.streaming_content).splitlines()) == 1 + most
    assert Entry.objects.order_by("-pk")[0].request == "GET /api/v1/alerts/export"
    for wrong in ("format=exe", "order=best", "opened_from=soon"):
        assert client.get(f"/api/v1/alerts/export?{wrong}").status_code == 400, wrong


def test_a_file_is_read_in_pieces_while_it_is_sent(
    query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient], monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    record(query, *(crossing(query, "in", f"car {n}", n) for n in range(9)))
    monkeypatch.setattr("webapp.alerts.export.AT_ONCE", 2)
    answer = client_of(people.viewer).get("/api/v1/alerts/export?order=event")
    lines = iter(answer.streaming_content)
    with django_assert_max_num_queries(8):
        assert b"car 8" in next(line for line in lines if b"car" in line)
    Alert.objects.filter(entities=["car 0"]).update(state="resolved")
    assert len(list(lines)) == 8, "the rest follows"
