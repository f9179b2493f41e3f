"""Alerts: opened and ended by answers, in any batches; handled by users; published through the
outbox."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from engine.sinks.facts import StoredFact
from tests.examples import examples
from webapp.alerts.handling import Decision, alerts_decide
from webapp.alerts.models import Alert, Step
from webapp.alerts.services import alerts_record
from webapp.detections.models import Outbox
from webapp.queries.models import Query
from webapp.queries.services import query_edit, query_register, query_remove

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def stored(key: bytes, query: Query, kind: str, entities: list[str], start: int, end: int | None, weight: int = 1) -> StoredFact:
    """The sink's report of a new answer."""
    return StoredFact(key, query.pk, 1, kind, entities, None, start, end, weight, new=True)


def crossing(query: Query, kind: str, entity: str, t: int) -> StoredFact:
    return stored(f"{query.pk}{kind}{entity}{t}".encode().ljust(16, b"."), query, kind, [entity], t, t)


def record(query: Query, *facts: StoredFact) -> list[dict[str, Any]]:
    return alerts_record(feed_id=query.feed_id, changes=facts)


def shown(query: Query) -> list[tuple[Any, ...]]:
    fields = ("kind", "entities", "start", "end", "state", "resolution")
    return sorted((kind, tuple(entities), *rest) for kind, entities, *rest in Alert.objects.filter(query=query).values_list(*fields))


def test_entering_opens_an_alert_and_leaving_ends_it(query: Query) -> None:
    (published,) = record(query, crossing(query, "in", "a", 10))
    assert (published["state"], published["start"], published["end"], published["severity"]) == ("new", 10, None, "low")
    assert (published["query"], published["query_name"]) == (query.pk, query.name)
    record(query, crossing(query, "in", "b", 11))
    (published,) = record(query, crossing(query, "out", "a", 20))
    assert (published["state"], published["end"], published["resolution"], published["over_at"] is None) == ("new", 20, "ended", False)
    assert shown(query) == [("in", ("a",), 10, 20, "new", "ended"), ("in", ("b",), 11, None, "new", "")]


def test_an_acknowledged_alert_shows_its_end_too(query: Query, people: SimpleNamespace) -> None:
    record(query, crossing(query, "in", "a", 10))
    alerts_decide(alerts=[Alert.objects.get()], decision=Decision(Step.ACKNOWLEDGED, people.owner))
    record(query, crossing(query, "out", "a", 20))
    alert = Alert.objects.get()
    assert (alert.state, alert.resolution, alert.acknowledged_by) == ("resolved", "ended", people.owner)


def test_kinds_without_alerts_open_no_alerts(query: Query) -> None:
    assert record(query, crossing(query, "out", "a", 5)) == []
    Query.objects.update(alert_kinds=[])
    assert record(query, crossing(query, "in", "a", 6)) == []
    assert not Alert.objects.exists()


def test_a_query_can_alert_on_leaving_and_end_on_entering(query: Query) -> None:
    Query.objects.update(alert_kinds=["out"])
    record(query, crossing(query, "out", "a", 5), crossing(query, "in", "a", 9))
    assert shown(query) == [("out", ("a",), 5, 9, "new", "ended")]


def test_an_alert_of_an_instant_stays_open_until_handled(people: SimpleNamespace, feed: Any) -> None:
    document = {"family": "transition", "region": {"center": [0, 0], "radius": 1}, "within": 50}
    query = query_register(owner=people.owner, feed=feed, name="t", specification=document, alert_kinds=["stayed_in"], severity="high")
    record(query, stored(b"1" * 16, query, "stayed_in", ["a"], 10, 60))
    assert shown(query) == [("stayed_in", ("a",), 10, 60, "new", "")]


def interval(query: Query, end: int | None, weight: int = 1) -> StoredFact:
    return stored(b"i" * 16, query, "near", ["a", "b"], 10, end, weight)


@pytest.fixture
def fluent(query: Query) -> Query:
    """A query with intervals as answers."""
    Query.objects.filter(pk=query.pk).update(family="calculus", alert_kinds=["near"])
    return Query.objects.get(pk=query.pk)


def test_an_interval_is_one_alert_that_ends_with_it(fluent: Query) -> None:
    record(fluent, interval(fluent, None))
    record(fluent, interval(fluent, None))
    assert shown(fluent) == [("near", ("a", "b"), 10, None, "new", "")]
    record(fluent, interval(fluent, 30))
    assert shown(fluent) == [("near", ("a", "b"), 10, 30, "new", "ended")]


def test_an_interval_whose_end_is_retracted_reopens_its_alert(fluent: Query) -> None:
    record(fluent, interval(fluent, None))
    record(fluent, interval(fluent, 30))
    record(fluent, interval(fluent, None))
    assert shown(fluent) == [("near", ("a", "b"), 10, None, "new", "")]


def test_a_retraction_resolves_the_alert_and_a_new_assertion_reopens_it(fluent: Query) -> None:
    record(fluent, interval(fluent, None))
    record(fluent, interval(fluent, None, weight=0))
    assert shown(fluent)[0][4:] == ("resolved", "withdrawn")
    record(fluent, interval(fluent, None))
    assert shown(fluent)[0][4:] == ("new", "")


WORLD = st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(40))
@given(moves=WORLD, cuts=st.sets(st.integers(0, 12)))
def test_alerts_do_not_depend_on_where_batches_are_cut(moves: list[tuple[str, bool]], cuts: set[int], query: Query) -> None:
    Alert.objects.all().delete()
    facts, inside = [], {"a": False, "b": False}
    for t, (entity, wants_in) in enumerate(moves):
        if inside[entity] != wants_in:
            inside[entity] = wants_in
            facts.append(crossing(query, "in" if wants_in else "out", entity, t))
    edges = sorted({0, len(facts), *(cut for cut in cuts if cut < len(facts))})
    for first, stop in pairwise(edges):
        # Within a batch the operator states answers in any order of entities.
        record(query, *sorted(facts[first:stop], key=lambda fact: fact.entities))
    assert shown(query) == expected(facts)


def expected(facts: Sequence[StoredFact]) -> list[tuple[Any, ...]]:
    """One alert for each `in`, ended by the next `out` of the same entity."""
    rows = []
    for position, fact in enumerate(facts):
        if fact.kind == "in":
            out = next((later for later in facts[position:] if later.kind == "out" and later.entities == fact.entities), None)
            rows.append(("in", tuple(fact.entities), fact.start, out.start if out else None, *(("new", "ended") if out else ("new", ""))))
    return sorted(rows)


# -- people ----------------------------------------------------------------------------------------


def test_an_acknowledgement_records_the_user_and_notifies_all_pages(
    query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    record(query, crossing(query, "in", "a", 10))
    alert = Alert.objects.get()
    answer = client_of(people.analyst).post(f"/api/v1/alerts/{alert.pk}/acknowledge", {"comment": "On it."})
    assert answer.status_code == 200
    shown_alert = answer.json()
    assert (shown_alert["state"], shown_alert["acknowledged_by"], shown_alert["comments"][0]["text"]) == ("acknowledged", "analyst", "On it.")
    (published,) = Outbox.objects.get(feed=query.feed).payload["alerts"]
    assert (published["id"], published["state"], published["acknowledged_by"], published["query"]) == (alert.pk, "acknowledged", "analyst", query.pk)
    assert published["query_name"] == query.name


def test_the_query_names_of_many_alerts_need_one_statement(query: Query, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(8):
        published = record(query, *(crossing(query, "in", f"e{n}", n) for n in range(50)))
    assert [row["query_name"] for row in published] == [query.name] * 50


def test_a_second_acknowledgement_changes_nothing(query: Query, people: SimpleNamespace) -> None:
    record(query, crossing(query, "in", "a", 10))
    alert = Alert.objects.get()
    assert alerts_decide(alerts=[alert], decision=Decision(Step.ACKNOWLEDGED, people.owner)) == [alert.pk]
    assert alerts_decide(alerts=[alert], decision=Decision(Step.ACKNOWLEDGED, people.analyst)) == []
    alert.refresh_from_db()
    assert alert.acknowledged_by == people.owner and Outbox.objects.count() == 1


def test_a_resolved_alert_cannot_be_acknowledged(query: Query, people: SimpleNamespace) -> None:
    record(query, crossing(query, "in", "a", 10))
    alert = Alert.objects.get()
    alerts_decide(alerts=[alert], decision=Decision(Step.RESOLVED, people.owner, "False alarm"))
    assert alerts_decide(alerts=[alert], decision=Decision(Step.ACKNOWLEDGED, people.analyst)) == []
    alert.refresh_from_db()
    assert (alert.state, alert.resolution, alert.resolved_by) == ("resolved", "person", people.owner)


def test_viewers_and_strangers_cannot_handle_alerts(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    record(query, crossing(query, "in", "a", 10))
    pk = Alert.objects.get().pk
    for action in ("acknowledge", "resolve"):
        assert client_of(people.viewer).post(f"/api/v1/alerts/{pk}/{action}", {}).status_code == 403
        assert client_of(people.stranger).post(f"/api/v1/alerts/{pk}/{action}", {}).status_code == 404
        assert client_of(people.viewer).post("/api/v1/alerts/bulk", {"ids": [pk], "action": action}).json() == {"changed": []}
    assert client_of(people.viewer).post(f"/api/v1/alerts/{pk}/comments", {"text": "x"}).status_code == 403
    assert Alert.objects.get().state == "new"


def test_an_ended_alert_stays_open_until_it_is_handled(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    record(query, crossing(query, "in", "a", 10), crossing(query, "in", "b", 10))
    record(query, crossing(query, "out", "a", 20))
    client = client_of(people.analyst)
    (waiting,) = client.get("/api/v1/alerts/?over=true").json()["results"]
    assert (waiting["state"], waiting["end"], waiting["resolution"], waiting["entities"]) == ("new", 20, "ended", ["a"])
    assert waiting["over_at"] is not None and waiting["acknowledged_by"] is None
    taken = client.post(f"/api/v1/alerts/{waiting['id']}/acknowledge", {"comment": "Looked at it."}).json()
    assert (taken["state"], taken["resolution"], taken["acknowledged_by"]) == ("resolved", "ended", "analyst")
    steps = [(step["action"], step["author"], step["text"]) for step in taken["steps"]]
    assert steps == [("ended", None, ""), ("acknowledged", "analyst", "Looked at it.")]


def test_an_alert_goes_through_its_life_step_by_step(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    record(query, crossing(query, "in", "a", 10))
    one = f"/api/v1/alerts/{Alert.objects.get().pk}"
    analyst, operator = client_of(people.analyst), client_of(people.operator)
    assert analyst.post(f"{one}/seen", {}).json()["state"] == "seen"
    assert analyst.post(f"{one}/assign", {"assignee": "viewer"}).status_code == 400, "a viewer handles no alerts"
    (unknown,) = analyst.post(f"{one}/assign", {"assignee": "nobody"}).json()["faults"]
    assert (unknown["pointer"], "There is no active user 'nobody'" in unknown["message"]) == ("/assignee", True)
    given = analyst.post(f"{one}/assign", {"assignee": "operator", "comment": "Yours", "revision": 0}).json()
    assert (given["state"], given["assignee"], given["revision"]) == ("assigned", "operator", 1)
    assert set(given["handlers"]) == {"owner", "analyst", "operator", "admin"}
    assert [row["id"] for row in operator.get("/api/v1/alerts/?assignee=me").json()["results"]] == [given["id"]]
    record(query, crossing(query, "out", "a", 20))
    assert Alert.objects.get().state == "assigned", "the user it was given to has not taken it yet"
    assert operator.post(f"{one}/resolve", {"revision": 1}).json()["state"] == "resolved"
    again = analyst.post(f"{one}/reopen", {"comment": "Not yet"}).json()
    assert (again["state"], again["assignee"], again["resolved_by"], again["resolution"]) == ("reopened", None, None, "ended")
    assert [step["action"] for step in again["steps"]] == ["seen", "assigned", "ended", "resolved", "reopened"]


def test_the_second_of_two_concurrent_users_learns_who_was_first(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    record(query, crossing(query, "in", "a", 10))
    one = f"/api/v1/alerts/{Alert.objects.get().pk}"
    first, second = client_of(people.analyst), client_of(people.owner)
    assert first.post(f"{one}/acknowledge", {"revision": 0, "comment": "On it"}).status_code == 200
    refused = second.post(f"{one}/acknowledge", {"revision": 0})
    assert refused.status_code == 409
    message = refused.json()["faults"][0]["message"]
    assert message.startswith("analyst acknowledged this alert at ") and "“On it”" in message
    assert second.post(f"{one}/resolve", {"revision": 0}).status_code == 409, "the alert is not the one that was seen"
    assert first.post(f"{one}/acknowledge", {"revision": 0}).status_code == 200, "a repeated click is no conflict"
    assert second.post(f"{one}/resolve", {"revision": 1}).status_code == 200
    assert Alert.objects.get().resolved_by == people.owner


def test_the_desk_is_searched_filtered_and_sorted(query: Query, people: SimpleNamespace, region: Any, client_of: Callable[..., APIClient]) -> None:
    record(query, *(crossing(query, "in", f"car {n}", 100 - n) for n in range(6)))
    Alert.objects.filter(entities=["car 3"]).update(severity="critical")
    client = client_of(people.viewer)

    def found(asked: str) -> list[str]:
        return [row["entities"][0][4:] for row in client.get(f"/api/v1/alerts/?{asked}").json()["results"]]

    assert found("search=out CAR 4") == ["4"], "every word, in the query's name or an entity"
    assert found(f"region={region.pk}&entity=car 1") == ["1"]
    assert found("region=999999") == []
    assert found("assignee=nobody&from=96&to=98") == ["3", "4"]
    assert found("opened_to=2020-01-01T00:00:00Z") == []
    assert found("order=severity&page_size=3") == ["3", "0", "1"]
    assert client.get("/api/v1/alerts/count?severity=low").json() == {"count": 5}
    assert client.get("/api/v1/alerts/count?at_most=4").json() == {"count": 4}
    assert client.get("/api/v1/alerts/count?at_most=0").status_code == 400
    for order, expected in {"newest": "012345", "oldest": "543210", "event": "012345", "-event": "543210", "severity": "301245"}.items():
        rows, address = "", f"/api/v1/alerts/?order={order}&page_size=2"
        while address:
            page = client.get(address).json()
            rows += "".join(row["entities"][0][4:] for row in page["results"])
            address = page["next"]
        assert rows == expected, order
    for wrong in ("order=best", "cursor=x", "order=event&cursor=7", "page_size=0", "opened_from=soon", "from=x"):
        assert client.get(f"/api/v1/alerts/?{wrong}").status_code == 400, wrong


def test_a_flood_is_shown_as_groups_with_counts_and_strips(
    query: Query, people: SimpleNamespace, region: Any, client_of: Callable[..., APIClient]
) -> None:
    record(query, *(crossing(query, "in", name, n) for n, name in enumerate("aab")))
    old = Alert.objects.order_by("pk")[0]
    Alert.objects.filter(pk=old.pk).update(opened_at=timezone.now() - timedelta(hours=50), severity="critical", state="acknowledged")
    client = client_of(people.viewer)

    def groups(asked: str) -> list[dict[str, Any]]:
        return list(client.get(f"/api/v1/alerts/groups?{asked}").json()["results"])

    (one,) = groups("by=query")
    assert (one["key"], one["name"], one["count"], one["unattended"], one["severity"]) == (str(query.pk), query.name, 3, 2, "critical")
    assert (one["strip"][0], one["strip"][-1], sum(one["strip"])) == (1, 2, 3)
    assert [(group["name"], group["count"]) for group in groups("by=entity")] == [("a", 2), ("b", 1)]
    assert [(group["key"], group["name"], group["count"]) for group in groups("by=region&state=new")] == [(str(region.pk), "square", 2)]
    assert client.get("/api/v1/alerts/groups?by=colour").status_code == 400
    assert client.get("/api/v1/alerts/groups?hours=1000").status_code == 400


def test_the_last_verdict_of_each_user_counts(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    record(query, crossing(query, "in", "a", 10), crossing(query, "in", "b", 11))
    alert = Alert.objects.get(entities=["a"])
    one = f"/api/v1/alerts/{alert.pk}/"
    client = client_of(people.analyst)
    assert client.post(f"{one}feedback", {"verdict": "right"}).status_code == 200
    assert client.post(f"{one}feedback", {"verdict": "false", "reason": "A gull"}).json()["verdict"] == "false"
    client_of(people.owner).post(f"{one}feedback", {"verdict": "not_useful"})
    said = client.get(one).json()["feedback"]
    assert sorted((row["author"], row["verdict"], row["reason"]) for row in said) == [("analyst", "false", "A gull"), ("owner", "not_useful", "")]
    assert [row["id"] for row in client.get("/api/v1/alerts/?verdict=false&verdict=not_useful").json()["results"]] == [alert.pk]
    assert client.post(f"{one}feedback", {"verdict": "perhaps"}).status_code == 400
    assert client_of(people.viewer).post(f"{one}feedback", {"verdict": "right"}).status_code == 403


def test_the_statistics_agree_with_a_recount(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    record(query, *(crossing(query, "in", name, n) for n, name in enumerate("aab")))
    now = timezone.now()
    first, second, third = Alert.objects.order_by("pk")
    Alert.objects.filter(pk=first.pk).update(opened_at=now - timedelta(hours=3), acknowledged_at=now - timedelta(hours=2))
    Alert.objects.filter(pk=second.pk).update(
        opened_at=now - timedelta(hours=2), acknowledged_at=now - timedelta(hours=1), state="resolved", resolved_at=now, resolved_by=people.owner
    )
    Alert.objects.filter(pk=third.pk).update(
        opened_at=now - timedelta(days=3), severity="critical", state="resolved", resolved_at=now - timedelta(days=2)
    )
    numbers = client_of(people.viewer).get("/api/v1/alerts/numbers?hours=48").json()
    assert numbers["opened"] == 2
    assert numbers["seconds_to_acknowledge"] == pytest.approx({"median": 3600, "p90": 3600}, abs=1)
    assert numbers["seconds_to_resolve"]["median"] == pytest.approx(7200, abs=1)
    assert numbers["open"]["low"][43:] == [0, 1, 2, 2, 1]
    assert set(numbers["open"]["critical"]) <= {0, 1} and numbers["open"]["critical"][-1] == 0
    assert [(row["name"], row["count"]) for row in numbers["noisiest_entities"]] == [("a", 2)]
    assert [(row["name"], row["count"]) for row in numbers["noisiest_queries"]] == [(query.name, 2)]


def test_all_matching_alerts_are_handled_in_chunks(
    query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.alerts.desk.PIECE", 2)
    monkeypatch.setattr("webapp.alerts.api.PIECE", 2)
    record(query, *(crossing(query, "in", f"car {n}", n) for n in range(5)))
    Alert.objects.filter(entities=["car 4"]).update(severity="high")
    client = client_of(people.analyst)
    below, pieces = None, []
    while True:
        answer = client.post("/api/v1/alerts/bulk", {"matching": "state=new&severity=low", "action": "resolve", "below": below}).json()
        pieces.append(len(answer["changed"]))
        below = answer["below"]
        if below is None:
            break
    assert pieces == [2, 2, 0]
    assert Alert.objects.exclude(state="resolved").get().entities == ["car 4"]
    for wrong, pointer in {"sate=new": "/matching/sate", "muted=maybe": "/matching/muted", "feed=a&feed=b": "/matching/feed"}.items():
        refused = client.post("/api/v1/alerts/bulk", {"matching": wrong, "action": "resolve"})
        assert (refused.status_code, [fault["pointer"] for fault in refused.json()["faults"]]) == (400, [pointer])
    assert client.post("/api/v1/alerts/bulk", {"matching": "", "ids": [1], "action": "resolve"}).status_code == 400
    viewer = client_of(people.viewer)
    assert viewer.post("/api/v1/alerts/bulk", {"matching": "", "action": "resolve"}).json()["looked_at"] == 0


def test_a_view_can_be_saved_and_shared_with_the_team(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    made = client_of(people.viewer).post("/api/v1/alert-views/", {"name": "Grave", "parameters": "severity=critical", "team": people.harbour.pk})
    assert made.status_code == 201
    (seen,) = client_of(people.analyst).get("/api/v1/alert-views/").json()["results"]
    assert (seen["name"], seen["parameters"]) == ("Grave", "severity=critical")
    assert client_of(people.stranger).get("/api/v1/alert-views/").json()["results"] == []
    assert client_of(people.viewer).delete(f"/api/v1/alert-views/{seen['id']}/").status_code == 204


def test_many_are_handled_at_once(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    record(query, *(crossing(query, "in", f"car {i}", i) for i in range(5)))
    ids = list(Alert.objects.order_by("id").values_list("pk", flat=True))
    client = client_of(people.owner)
    assert client.post("/api/v1/alerts/bulk", {"ids": ids[:3], "action": "acknowledge", "comment": "Seen"}).json()["changed"] == ids[:3]
    assert client.post("/api/v1/alerts/bulk", {"ids": ids, "action": "resolve"}).json()["changed"] == ids
    assert client.get("/api/v1/alerts/summary").json()["new"]["low"] == 0
    assert [row["comments"] for row in client.get("/api/v1/alerts/").json()["results"]] == [0, 0, 1, 1, 1]


def test_lists_are_filtered(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    record(query, crossing(query, "in", "a", 10), crossing(query, "in", "b", 11), crossing(query, "out", "b", 12))
    client = client_of(people.viewer)
    cases = {
        "state=new": 2,
        "state=resolved": 0,
        "state=new&state=resolved": 2,
        "entity=b": 1,
        "entity=c": 0,
        "severity=low": 2,
        "severity=high": 0,
        "feed=yard": 2,
        f"query={query.pk}": 2,
        "kind=in": 2,
    }
    for asked, count in cases.items():
        assert len(client.get(f"/api/v1/alerts/?{asked}").json()["results"]) == count, asked
    assert client.get("/api/v1/alerts/?state=nonsense").status_code == 400


def test_an_alert_comes_with_what_explains_it(query: Query, people: SimpleNamespace, received: Callable[..., None], client_of: Any) -> None:
    from webapp.detections.models import Detection
    from webapp.detections.partitions import partitions_ensure, span_of

    received(query.feed, [{"entity": "a", "t": t, "x": float(t), "y": 5.0} for t in (1, 5, 10, 20)])
    fact = crossing(query, "in", "a", 10)
    partitions_ensure([span_of(10)])
    evidence = [
        {"variable": None, "entity": "a", "t": 5, "x": -1, "y": 5, "seq": 1},
        {"variable": None, "entity": "a", "t": 10, "x": 1, "y": 5, "seq": 2},
    ]
    Detection.objects.create(
        feed=query.feed, key=fact.key, query=query, version=1, kind="in", entities=["a"], start=10, end=10, evidence=evidence, seq=1, detected_at=1
    )
    record(query, fact)
    shown_alert = client_of(people.viewer).get(f"/api/v1/alerts/{Alert.objects.get().pk}/").json()
    assert shown_alert["evidence"]["detection"]["evidence"] == evidence
    assert [point[0] for point in shown_alert["evidence"]["tracks"][0]["points"]] == [1, 5, 10, 20]
    assert shown_alert["sentence"].startswith("Reports when")


def test_an_alert_is_explained_by_the_query_version_that_raised_it(query: Query, people: SimpleNamespace, region: Any, client_of: Any) -> None:
    record(query, crossing(query, "in", "a", 10))
    circle = {"center": [5, 5], "radius": 2}
    edited = query_edit(query=query, user=people.owner, specification={"family": "border", "version": 1, "region": circle})
    record(edited, replace(crossing(edited, "in", "b", 20), version=2))
    client = client_of(people.viewer)
    of = [client.get(f"/api/v1/alerts/{alert.pk}/").json() for alert in Alert.objects.order_by("pk")]
    assert [(one["version"], one["shapes"]) for one in of] == [(1, [region.geometry]), (2, [circle])]
    assert of[0]["sentence"] == "Reports when something enters square or leaves square." != of[1]["sentence"]
    query_remove(query=edited)
    gone = client.get(f"/api/v1/alerts/{of[0]['id']}/").json()
    assert (gone["sentence"], gone["shapes"]) == (of[0]["sentence"], of[0]["shapes"])
    assert (of[0]["removed"], gone["removed"]) == (False, True), "its query has no page any more"


def test_removing_a_query_resolves_its_alerts_and_editing_it_does_not(query: Query, people: SimpleNamespace) -> None:
    record(query, crossing(query, "in", "a", 10))
    query_edit(query=query, user=people.owner, severity="high")
    assert Alert.objects.get().state == "new"
    query_remove(query=query)
    alert = Alert.objects.get()
    assert (alert.state, alert.resolution) == ("resolved", "removed")
    assert Outbox.objects.get().payload["alerts"][0]["state"] == "resolved"
