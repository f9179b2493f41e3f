"""Newer forms as an analyst fills them, each by mouse and by keyboard: who is there, who meets whom, sums, what must not come, answers as events.

Each query is tried, saved, opened again and saved unchanged: the stored document stays as it was.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services, pytest.mark.slow]

SQUARE = {"type": "Polygon", "coordinates": [[[2, 2], [8, 2], [8, 8], [2, 8], [2, 2]]]}
MOST_TABS = 90
"""From anywhere on the page to any field of the form."""


@pytest.fixture
def yard(site: Site) -> Site:
    """A stored square with forty walkers about it."""
    from webapp.feeds.services import region_create

    feed = site.world.feed
    region_create(owner=feed.owner, feed=feed, name="square", geometry=SQUARE)
    site.world.append(600)
    site.log_in()
    return site


def test_who_is_there_and_who_meets_whom(yard: Site) -> None:
    _occupancy_by_mouse(yard)
    _occupancy_by_keyboard(yard)
    _encounter_by_mouse(yard)
    _encounter_by_keyboard(yard)
    yard.page.close()
    assert yard.faults == []


def test_sums_what_must_not_come_and_answers_as_events(yard: Site) -> None:
    _sum_by_mouse(yard)
    _sum_by_keyboard(yard)
    _negation_by_mouse(yard)
    _negation_by_keyboard(yard)
    _derived_by_mouse(yard)
    _derived_by_keyboard(yard)
    yard.page.close()
    assert yard.faults == []


# -- what all forms share -------------------------------------------------------------------------------------------------------------


def _new(site: Site, family: str) -> Page:
    site.page.goto(f"{site.address}/queries/new?feed=yard&family={family}")
    return site.page


def _to(page: Page, selector: str) -> None:
    """Presses Tab until the element has the focus."""
    for _ in range(MOST_TABS):
        if page.evaluate("selector => document.activeElement?.matches(selector) ?? false", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} cannot be reached by Tab")


def _type(page: Page, selector: str, text: str) -> None:
    """Goes to a field by Tab and writes `text` instead of what stands there."""
    _to(page, selector)
    page.keyboard.press("Control+A")
    page.keyboard.type(text)


def _tried(page: Page, by_keyboard: bool = False) -> int:
    """How many answers the preview has."""
    if by_keyboard:
        _to(page, "#run-preview")
        page.keyboard.press("Enter")
    else:
        page.locator("#run-preview").click()
    page.locator(".preview-total").wait_for()
    return int(page.locator(".preview-total").inner_text().replace(",", ""))


def _saved(site: Site, name: str, by_keyboard: bool = False) -> Any:
    """The document as it is stored, after it was opened again and saved as it was."""
    from webapp.queries.models import Query

    page = site.page
    page.locator(".sentence-text").wait_for()
    if by_keyboard:
        _type(page, "#query-name", name)
        _to(page, "#save-query")
        page.keyboard.press("Enter")
    else:
        page.fill("#query-name", name)
        page.locator("#save-query").click()
    page.wait_for_url(re.compile(r"/\?feed=yard"))
    stored = Query.objects.get(name=name)
    page.goto(f"{site.address}/queries/{stored.pk}")
    page.locator(".sentence-text").wait_for()
    with page.expect_response(lambda answer: answer.request.method == "PATCH") as answered:
        page.locator("#save-query").click()
    assert answered.value.status == 200
    again = Query.objects.get(name=name)
    assert (again.specification, again.version) == (stored.specification, 1)
    return stored.specification


# -- how many are there ---------------------------------------------------------------------------------------------------------------


def _occupancy_by_mouse(site: Site) -> None:
    """A stored region, a number; the count stands over the region as a stepped line."""
    page = _new(site, "occupancy")
    page.locator("#region-stored").click()
    page.locator("#region-stored").fill("square")
    page.locator("#region-stored").blur()
    page.locator("#occupancy-count").click()
    page.locator("#occupancy-count").fill("6")
    assert _tried(page) > 0
    page.locator(".count-line .count-steps").wait_for()
    assert page.locator(".count-line svg").get_attribute("aria-label") is not None
    page.locator("#occupancy-count").fill("7")
    page.locator(".count-line").wait_for(state="detached")
    stored = _saved(site, "crowd")
    wanted = {"family": "occupancy", "version": 1, "region": {"region": "square"}, "count": [">=", 7], "stale": "PT5M"}
    assert stored == wanted


def _occupancy_by_keyboard(site: Site) -> None:
    """At most two in a range of values, and what is wrong stands at its field."""
    page = _new(site, "occupancy")
    _type(page, "#region-stored", "square")
    _to(page, "#occupancy-counting")
    page.keyboard.press("ArrowDown")
    _type(page, "#occupancy-count", "many")
    page.locator(".todo", has_text="must be a number").wait_for()
    page.keyboard.press("Control+A")
    page.keyboard.type("30")
    _type(page, "#lasting", "1")
    _to(page, "#lasting-unit")
    page.keyboard.type("seconds")
    assert _tried(page, by_keyboard=True) > 0
    stored = _saved(site, "quiet", by_keyboard=True)
    assert (stored["count"], stored["lasting"]) == (["<=", 30], "PT1S")


# -- who meets whom -------------------------------------------------------------------------------------------------------------------


def _encounter_by_mouse(site: Site) -> None:
    """Two kinds, interpolated; an answer of the preview shows two ways and how near they came."""
    page = _new(site, "encounter")
    page.get_by_role("button", name="One of each of two kinds").click()
    page.get_by_role("group", name="One", exact=True).get_by_role("button", name="Add a condition").click()
    page.locator("#role-a-column-0").select_option("entity")
    page.locator("#role-a-value-0").fill("w1")
    page.locator("#encounter-distance").fill("2")
    page.locator("#encounter-every").fill("0.5")
    page.locator("#encounter-every-unit").select_option("s")
    page.get_by_text("On the straight way between two reports").click()
    assert _tried(page) > 0
    page.locator(".preview-timeline canvas").first.wait_for()
    stored = _saved(site, "escort")
    assert stored["a"] == {"where": [["entity", "=", "w1"]]} and "b" not in stored
    assert (stored["distance"], stored["every"], stored["position"]) == (2, 500, "interpolated")


def _encounter_by_keyboard(site: Site) -> None:
    page = _new(site, "encounter")
    _type(page, "#encounter-distance", "1")
    _type(page, "#encounter-lasting", "2")
    _to(page, "#encounter-lasting-unit")
    page.keyboard.type("seconds")
    _type(page, "#encounter-every", "1")
    _to(page, "#encounter-every-unit")
    page.keyboard.type("seconds")
    assert _tried(page, by_keyboard=True) >= 0
    stored = _saved(site, "contact", by_keyboard=True)
    assert stored == {"family": "encounter", "version": 1, "distance": 1, "every": "PT1S", "gap": "PT1M", "lasting": "PT2S"}


# -- sums -----------------------------------------------------------------------------------------------------------------------------


def _sum_by_mouse(site: Site) -> None:
    """In the graph's form; the edge says it."""
    page = _new(site, "constraint")
    page.locator("#mutual-count").fill("2")
    page.locator("#mutual-distance").fill("3")
    page.get_by_role("button", name="Graph", exact=True).click()
    page.get_by_role("button", name="1: V1, V2").click()
    page.get_by_text("Compared values").click()
    page.locator("#compare-left-0").fill("V1.x - V2.x")
    page.locator("#compare-operator-0").select_option(">")
    page.locator("#compare-right-0").fill("0.5 + 1")
    page.locator("#compare-right-0").fill("2 * V2.y - 9")
    page.locator(".graph-label", has_text="V1.x - V2.x > 2 * V2.y - 9").wait_for()
    page.locator(".sentence-text", has_text="V1.x - V2.x is above 2 * V2.y - 9").wait_for()
    stored = _saved(site, "slope")
    assert stored["constraints"][0]["compare"] == [["V1.x - V2.x", ">", "2 * V2.y - 9"]]


def _sum_by_keyboard(site: Site) -> None:
    """In the text; a fault has its place."""
    with site.page.expect_response(lambda answer: "queries/closure" in answer.url):
        page = _new(site, "constraint")
    page.locator(".sentence-text").wait_for()
    _to(page, "[data-view=text]")
    page.keyboard.press("Enter")
    _to(page, "#trigger-text")
    page.keyboard.press("Control+A")
    page.keyboard.type("CREATE TRIGGER near FOR E AS A, E AS B WHEN B.t - A.t IN [0, 500] AND A.x - B.z < 1")
    page.locator(".trigger-fault", has_text="'z'").wait_for()
    page.keyboard.press("Control+A")
    page.keyboard.type("CREATE TRIGGER near FOR E AS A, E AS B WHEN B.t - A.t IN [0, 500] AND A.x - B.x < 0.01 AND B.x - A.x < 0.01")
    page.locator(".trigger-fault").wait_for(state="detached")
    assert _tried(page, by_keyboard=True) >= 0
    stored = _saved(site, "same line", by_keyboard=True)
    assert "A.x - B.x < 0.01" in stored["trigger"]


# -- what must not come ---------------------------------------------------------------------------------------------------------------


def _negation_by_mouse(site: Site) -> None:
    """A : B becomes A with no guard around it."""
    page = _new(site, "composite")
    page.get_by_role("treeitem", name=re.compile(r"\bB\b")).click()
    page.get_by_role("button", name=re.compile(r"^Remove")).first.click()
    page.get_by_role("treeitem", name=re.compile(r"\bA\b")).click()
    page.get_by_role("button", name="Not around").click()
    page.locator(".pattern-words", has_text=re.compile("A with no [A-Z] from 5 minutes before until 5 minutes after")).wait_for()
    page.get_by_role("treeitem", name=re.compile("NOT AROUND")).click()
    page.locator("#pattern-span").fill("1")
    page.locator("#pattern-span-unit").select_option("s")
    page.locator(".pattern-words", has_text="from 1 second before").wait_for()
    assert _tried(page) >= 0
    stored = _saved(site, "guarded")
    assert re.fullmatch(r"A AND ![A-Z]\[PT1S\]", stored["pattern"])


def _negation_by_keyboard(site: Site) -> None:
    """B with no A in the minute before, then turned about and back in the text."""
    page = _new(site, "composite")
    page.get_by_role("treeitem", name="SEQUENCE").focus()
    page.keyboard.press("End")
    page.keyboard.press("p")
    page.locator(".pattern-words", has_text=re.compile("no [A-Z] in the 5 minutes before")).wait_for()
    names = page.locator(".pattern-name, .pattern-operator").all_inner_texts()
    assert names[:3] == ["SEQUENCE", "A", "NOT BEFORE"]
    stored = _saved(site, "unannounced", by_keyboard=True)
    assert re.fullmatch(r"A : \(![A-Z]\[PT5M\] : B\)", stored["pattern"])


# -- answers of other queries as events -----------------------------------------------------------------------------------------------


def _derived_by_mouse(site: Site) -> None:
    """In, then out again: the answers of a stored query are what a pattern is made of."""
    page = _new(site, "composite")
    page.get_by_text("Answers of other queries as events").click()
    page.locator("#add-derived:enabled").click()
    page.locator("#derive-query-0").fill("crossings")
    page.locator("#derive-query-0").blur()
    page.locator("#derive-event-0").fill("entered")
    page.locator("#derive-event-0").blur()
    page.get_by_role("treeitem", name=re.compile(r"\bA\b")).click()
    page.get_by_role("button", name="Add a condition").first.click()
    page.locator("#primitive-where-column-0").select_option("event")
    page.locator("#primitive-where-value-0").fill("entered")
    page.locator(".sentence-text", has_text="An event entered is each answer in of crossings, at its end").wait_for()
    assert _tried(page) > 0
    stored = _saved(site, "in and on")
    assert stored["derive"] == {"entered": {"query": "crossings", "kind": "in", "at": "end"}}
    assert stored["primitives"]["A"] == {"where": [["event", "=", "entered"]]}


def _derived_by_keyboard(site: Site) -> None:
    """The other kind of answer; the columns of answers may be named."""
    page = _new(site, "composite")
    _to(page, "[data-pointer='/derive'] summary")
    page.keyboard.press("Enter")
    page.locator("#add-derived:enabled").wait_for()
    _to(page, "#add-derived")
    page.keyboard.press("Enter")
    page.locator("#derive-query-0").and_(page.locator(":focus")).wait_for()
    page.keyboard.press("Control+A")
    page.keyboard.type("crossings")
    _to(page, "#derive-kind-0")
    page.keyboard.type("Left")
    _type(page, "#derive-event-0", "gone")
    page.keyboard.press("Tab")
    stored = _saved(site, "gone", by_keyboard=True)
    assert stored["derive"] == {"gone": {"query": "crossings", "kind": "out", "at": "end"}}
