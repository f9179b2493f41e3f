"""The demo's queries in their editors, each form once: each is opened, tried and saved unchanged,
and one of its answers is explained.

Saving and explaining are tested on the page for one query of each kind; for the others the API gets
the documents that their editors have sent.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from django.test import Client

from engine.derive import sources_of
from tests.browser.answering import Answering
from tests.examples import PROFILE

if TYPE_CHECKING:
    from tests.browser.conftest import Site
    from webapp.feeds.models import Feed
    from webapp.queries.models import Query

pytestmark = [pytest.mark.browser, pytest.mark.services, pytest.mark.slow]

NOW = 1_763_700_000_000
MINUTES = {"city": 3, "strait": 40, "plaza": 6, "ocean": 120, "warehouse": 20}
"""The length of each world: answers for nearly every query, and few rows."""
WITHOUT_ANSWER = {"Garage 01: calls", "Bank tour", "Stand A: crowd", "Varne bank reserve: fishing boats on their way"}
"""Queries without answers in these minutes, so that there is nothing to explain."""
LAST_CARS = "car-1900"
PLAYED = 2
"""The number of scenes of each kind that are simulated, with all their entities."""


def test_every_form_of_demo_query_goes_through_its_editor(site: Site) -> None:
    seen = set[Any]()
    queries = [query for name in MINUTES for query in _seed(site, name, seen)]
    families = {query.family for query in queries}
    assert families >= {"border", "transition", "motion", "constraint", "composite", "calculus", "occupancy", "encounter", "arrival"}
    assert any("derive" in query.specification for query in queries)
    site.log_in()
    api = Client()
    api.force_login(site.world.feed.owner)
    seen_on_page = set[Any]()
    for query in queries:
        _opened(site, query)
        sent = _tried(site, query)
        kind = (query.family, "derive" in query.specification, "synopsis" in query.specification)
        if kind in seen_on_page:
            _saved_as_sent(api, query, sent)
        else:
            _saved_unchanged(site, query)
        _explained(site, api, query, on_page=kind not in seen_on_page)
        seen_on_page.add(kind)
        assert site.faults == [], query.name
    site.page.close()


# -- the demo, small -------------------------------------------------------------------------------


def _of_each_form(queries: list[dict[str, Any]], seen: set[Any]) -> list[dict[str, Any]]:
    """At night every program, and of the other families the first query with each set of keys:
    queries with the same keys use the same fields. By day one of each family, and one of it that
    derives."""
    found = []
    for query in queries:
        specification = query["specification"]
        family = specification["family"]
        form = query["name"] if family == "calculus" else (family, frozenset(specification))
        if PROFILE == "fast":
            form = (family, "derive" in specification)
        if form not in seen:
            seen.add(form)
            found.append(query)
    return found


def _seed(site: Site, name: str, seen: set[Any]) -> list[Query]:
    """The feed with a few rows, and the first query of each form that no earlier feed has; its
    answers are stored and open alerts."""
    from webapp.demo.simulation.scenarios import read_scenario
    from webapp.feeds.services import feed_create, region_create
    from webapp.queries.families import kinds_of
    from webapp.queries.services import query_register

    scenario, owner = read_scenario(name), site.world.feed.owner
    feed = feed_create(owner=owner, **scenario.feed)
    forms = _of_each_form(scenario.queries, seen)
    # A query over other queries' answers needs all of these queries.
    above = {source.query for query in forms for source in sources_of(query["specification"])}
    queries = [query for query in scenario.queries if query in forms or query["name"] in above]
    wanted = json.dumps([query["specification"] for query in queries])
    for place in scenario.places:
        if json.dumps(place.name) in wanted:
            region_create(owner=owner, feed=feed, name=place.name, geometry=place.geometry, tags=place.tags)
    made = []
    for query in queries:
        entries = {key: value for key, value in query.items() if key not in ("truth", "alert_kinds")}
        made.append(query_register(owner=owner, feed=feed, alert_kinds=kinds_of(query["specification"]), **entries))
    _play(site, feed, scenario)
    return [one for one, query in zip(made, queries, strict=True) if query in forms]


def _play(site: Site, feed: Feed, scenario: Any) -> None:
    from django.conf import settings

    from engine.model.events import check_rows
    from engine.sources.eventlog import EventLog

    end = NOW + MINUTES[feed.name] * 60_000
    rows, played = scenario.world.rows(NOW, end), dict[str, list[Any]]()
    for event in scenario.world.truth(NOW, end):
        played.setdefault(event.kind, []).append(event)
    names = sorted({entity for some in played.values() for one in some[:PLAYED] for entity in one.entities})
    who = pc.greater(rows["entity"], LAST_CARS) if feed.name == "city" else pc.is_in(rows["entity"], value_set=pa.array(names))
    good, dead = check_rows(rows.filter(who), feed.engine_feed())
    assert not dead
    answering = Answering(site.world, feed)
    EventLog(settings.EVENT_LOG_ROOT, feed.name).append(good)
    assert answering.catch_up()


# -- what an analyst does --------------------------------------------------------------------------


def _opened(site: Site, query: Query) -> None:
    site.page.goto(f"{site.address}/queries/{query.pk}")
    site.page.locator(".sentence-text").first.wait_for()
    assert site.page.locator(".field-error, .todo").count() == 0, query.name


def _tried(site: Site, query: Query) -> Any:
    """The document that the editor sends. On a busy machine a trial may exceed the server's time
    limit; then it is repeated."""
    page = site.page
    button, shown, address = ("#run-sandbox", ".sandbox-summary", "/queries/sandbox")
    if query.family != "calculus":
        button, shown, address = ("#run-preview", ".preview-total", "/queries/preview")

    sent = []

    def tried() -> bool:
        with page.expect_request(lambda request: request.method == "POST" and request.url.endswith(address)) as asked:
            page.locator(button).click()
        sent.append(asked.value.post_data_json["specification"])
        page.locator(f"{shown}, .sandbox-body .empty, .preview-result .empty").first.wait_for()
        page.locator("[aria-busy=true]").first.wait_for(state="detached")
        assert page.locator(".field-error").count() == 0, query.name
        return page.locator(shown).count() > 0

    site.world.wait(tried, 60, f"a trial of {query.name}")
    return sent[-1]


def _saved_unchanged(site: Site, query: Query) -> None:
    before = query.specification
    # The page is loaded again with the stored query.
    with site.page.expect_navigation(), site.page.expect_response(lambda answer: answer.request.method == "PATCH") as saved:
        site.page.locator("#save-query").click()
    assert saved.value.status == 200, query.name
    query.refresh_from_db()
    assert query.specification == before, query.name


def _saved_as_sent(api: Client, query: Query, sent: Any) -> None:
    before = query.specification
    answer = api.patch(f"/api/v1/queries/{query.pk}/", json.dumps({"specification": sent}), content_type="application/json")
    assert answer.status_code == 200, (query.name, answer.content)
    query.refresh_from_db()
    assert query.specification == before, query.name


def _explained(site: Site, api: Client, query: Query, *, on_page: bool) -> None:
    """An alert names the events of its answer; for a program's answer it links to the rule of its
    start, marked in the text."""
    from webapp.alerts.models import Alert

    alert = Alert.objects.filter(query=query).order_by("pk").first()
    assert (alert is None) == (query.name in WITHOUT_ANSWER), query.name
    if alert is None:
        return
    if not on_page and query.family != "calculus":
        assert api.get(f"/api/v1/alerts/{alert.pk}/").json()["evidence"], query.name
        return
    page = site.page
    page.goto(f"{site.address}/alerts/{alert.pk}")
    page.locator(".alert-detail").get_by_text("Why", exact=True).wait_for()
    if query.family != "calculus":
        page.locator(".alert-detail .evidence li").first.wait_for()
        return
    page.locator(".rules-behind a").first.click()
    page.locator(".sandbox-detail", has_text="line").first.wait_for()
    page.locator(".cm-pointed").first.wait_for()
