"""An analyst fills the forms of newer families, each by mouse and by keyboard: occupancy,
encounters, arrivals, and total time.

Each query is tried, saved, opened again and saved unchanged: the stored document stays the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.forms import choose, new_query, press, preview, saved, shot, tab_to, type_in, walked

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Page

    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services, pytest.mark.slow]


def test_occupancy_encounter_and_accumulated_time_are_registered_in_their_forms(site: Site) -> None:
    yard = walked(site)
    _cards_by_mouse(yard)
    _cards_by_keyboard(yard)
    _occupancy_by_mouse(yard)
    _occupancy_by_keyboard(yard)
    _encounter_by_mouse(yard)
    _encounter_by_keyboard(yard)
    _arrival_by_mouse(yard)
    _arrival_by_keyboard(yard)
    _total_by_mouse(yard)
    _total_by_keyboard(yard)
    yard.page.close()
    assert yard.faults == []


# -- the gallery -----------------------------------------------------------------------------------


def _cards_by_mouse(site: Site) -> None:
    """A card opens the editor of its family in the form that it names."""
    page = new_query(site, "border")
    page.locator(".family-card", has_text="How long in all").click()
    page.locator(".step-window [id$=-total]").wait_for()
    assert page.get_by_role("button", name="At least this long in total").get_attribute("aria-pressed") == "true"
    shot(page, "card-total")
    page.locator(".family-card", has_text="Differences and sums").click()
    page.locator(".constraint-detail").locator("#compare-operator-0").wait_for()
    shot(page, "card-sums")


def _cards_by_keyboard(site: Site) -> None:
    """The arrow keys move from card to card; the card for answers as events adds the first one at
    once, and keeps the focus."""
    page = new_query(site, "composite")
    page.locator(".pattern-words", has_text="A").wait_for()
    tab_to(page, "input[name=family]")
    page.keyboard.press("ArrowRight")
    page.locator(".pattern-words", has_text="no B").wait_for()
    shot(page, "card-absence")
    page.keyboard.press("ArrowRight")
    page.locator("#derive-query-0").wait_for()
    assert page.locator("#derive-query-0").input_value() == "crossings"
    assert page.evaluate("document.activeElement.value") == "derive"
    shot(page, "card-derive")


# -- how many are there ----------------------------------------------------------------------------


def _occupancy_by_mouse(site: Site) -> None:
    """A stored region and a number; the count is shown over the region as a stepped line."""
    page = new_query(site, "occupancy")
    page.locator("#region-stored").click()
    page.locator("#region-stored").fill("square")
    page.locator("#region-stored").blur()
    page.locator("#occupancy-count").click()
    page.locator("#occupancy-count").fill("6")
    assert preview(page) > 0
    page.locator(".count-line .count-steps").wait_for()
    assert page.locator(".count-line svg").get_attribute("aria-label") is not None
    _a_past_period(page)
    # Where the map ends above the region, nothing of the line is cut off.
    page.locator(".count-label").wait_for()
    label, canvas = (_box(page, one) for one in (".count-label", ".map-canvas"))
    page.mouse.move(canvas["x"] + 80, canvas["y"] + canvas["height"] - 30)
    page.mouse.down()
    page.mouse.move(canvas["x"] + 80, canvas["y"] + canvas["height"] - 60 - (label["y"] - canvas["y"]), steps=5)
    page.mouse.up()
    page.wait_for_timeout(1000)
    assert _box(page, ".count-label")["y"] >= canvas["y"]
    page.locator("#occupancy-count").fill("7")
    page.locator(".count-line").wait_for(state="detached")
    stored = saved(site, "crowd")
    wanted = {"family": "occupancy", "version": 1, "region": {"region": "square"}, "count": [">=", 7], "stale": "PT5M"}
    assert stored == wanted


def _box(page: Page, selector: str) -> FloatRect:
    """Where the element is; one that is being drawn anew has no box for a moment."""
    for _ in range(100):
        if (box := page.locator(selector).bounding_box()) is not None:
            return box
        page.wait_for_timeout(100)
    raise AssertionError(selector)


def _a_past_period(page: Page) -> None:
    """The ends of the period that was previewed are offered, and can be changed."""
    page.locator("#preview-period").select_option("other")
    first = page.locator("#preview-from").input_value()
    page.locator("#preview-to").fill(first)
    page.locator("#run-preview").click()
    page.locator(".preview-result", has_text="Which period?").wait_for()
    later = page.evaluate("new Date(Date.parse(document.querySelector('#preview-from').value + 'Z') + 5000).toISOString().slice(0, 19)")
    page.locator("#preview-to").fill(later)
    assert preview(page) > 0
    page.locator(".preview-summary", has_text="5 s of history").wait_for()
    shot(page, "past-period")


def _occupancy_by_keyboard(site: Site) -> None:
    """At most two in a range of values; a fault is shown at its field."""
    page = new_query(site, "occupancy")
    type_in(page, "#region-stored", "square")
    tab_to(page, "#occupancy-counting")
    page.keyboard.press("ArrowDown")
    type_in(page, "#occupancy-count", "many")
    page.locator(".todo", has_text="must be a number").wait_for()
    page.keyboard.press("Control+A")
    page.keyboard.type("30")
    type_in(page, "#lasting", "1")
    choose(page, "#lasting-unit", "second")
    assert preview(page, by_keyboard=True) > 0
    stored = saved(site, "quiet", by_keyboard=True)
    assert (stored["count"], stored["lasting"]) == (["<=", 30], "PT1S")


# -- who meets whom --------------------------------------------------------------------------------


def _encounter_by_mouse(site: Site) -> None:
    """Two kinds of entities, interpolated; an answer of the preview shows two tracks
    and their least distance."""
    page = new_query(site, "encounter")
    page.get_by_role("button", name="One of each of two kinds").click()
    page.get_by_role("group", name="One", exact=True).get_by_role("button", name="Add a condition").click()
    page.locator("#role-a-column-0").select_option("entity")
    page.locator("#role-a-value-0").fill("w1")
    page.locator("#encounter-distance").fill("2")
    page.locator("#encounter-every").fill("0.5")
    page.locator("#encounter-every-unit").select_option("s")
    page.get_by_text("On the straight line between two reports").click()
    assert preview(page) > 0
    page.locator(".preview-timeline canvas").first.wait_for()
    stored = saved(site, "escort")
    assert stored["a"] == {"where": [["entity", "=", "w1"]]} and "b" not in stored
    assert (stored["distance"], stored["every"], stored["position"]) == (2, 500, "interpolated")


def _encounter_by_keyboard(site: Site) -> None:
    page = new_query(site, "encounter")
    type_in(page, "#encounter-distance", "1")
    type_in(page, "#encounter-lasting", "2")
    choose(page, "#encounter-lasting-unit", "second")
    type_in(page, "#encounter-every", "1")
    choose(page, "#encounter-every-unit", "second")
    assert preview(page, by_keyboard=True) >= 0
    stored = saved(site, "contact", by_keyboard=True)
    assert stored == {"family": "encounter", "version": 1, "distance": 1, "every": "PT1S", "gap": "PT1M", "lasting": "PT2S"}


# -- who is about to arrive ------------------------------------------------------------------------


def _arrival_by_mouse(site: Site) -> None:
    """All entities that will be in a stored region within two seconds, by course and speed over the
    last one and a half seconds."""
    page = new_query(site, "arrival")
    page.locator("#region-stored").fill("square")
    page.locator("#region-stored").blur()
    for field, seconds in [("within", "2"), ("over", "1.5"), ("gap", "1")]:
        page.locator(f"#arrival-{field}").fill(seconds)
        page.locator(f"#arrival-{field}-unit").select_option("s")
    page.locator(".sentence-text", has_text="on its way into square").wait_for()
    assert preview(page) > 0
    page.locator(".preview-timeline canvas").first.wait_for()
    stored = saved(site, "coming")
    assert stored == {"family": "arrival", "version": 1, "region": {"region": "square"}, "within": "PT2S", "over": 1500, "gap": "PT1S"}


def _arrival_by_keyboard(site: Site) -> None:
    """The form asks for a missing time."""
    page = new_query(site, "arrival")
    type_in(page, "#region-stored", "square")
    type_in(page, "#arrival-within", "")
    page.keyboard.press("Backspace")
    page.locator(".todo", has_text="enter how far ahead to look").wait_for()
    page.keyboard.type("30")
    choose(page, "#arrival-within-unit", "second")
    page.locator(".sentence-text", has_text="within 30 seconds").wait_for()
    stored = saved(site, "soon", by_keyboard=True)
    assert (stored["within"], stored["over"], stored["gap"]) == ("PT30S", "PT3M", "PT2M")


# -- for how long in all ---------------------------------------------------------------------------


def _total_by_mouse(site: Site) -> None:
    """At least two of the last ten seconds in the square, on and off."""
    page = new_query(site, "motion")
    page.get_by_role("button", name="Remove step 2").click()
    page.get_by_label("Stored region").fill("square")
    page.get_by_label("Stored region").blur()
    page.get_by_role("button", name="At a separate time").click()
    page.get_by_role("button", name="At least this long in total").click()
    for field, seconds in [("total", "2"), ("gap", "1"), ("from", "10")]:
        page.locator(f".step-window [id$=-{field}]").fill(seconds)
        page.locator(f".step-window [id$=-{field}-unit]").select_option("s")
    page.locator("#motion-every").fill("1")
    page.locator("#motion-every-unit").select_option("s")
    page.locator(".step-title + .hint", has_text="at least 2 s in all in the last 10 s").wait_for()
    page.locator(
        ".sentence-text", has_text="was in square for at least 2 seconds in all in the last 10 seconds (a report counts for 1 second)"
    ).wait_for()
    assert preview(page) > 0
    stored = saved(site, "lingering")
    total = {"quantifier": "total", "at_least": "PT2S", "gap": "PT1S"}
    assert stored["predicates"] == [{"inside": {"region": "square"}, "window": ["PT10S", 0], **total}]


def _total_by_keyboard(site: Site) -> None:
    """At most a second; the next step is the first of the order, because a
    total is not in the order."""
    page = new_query(site, "motion")
    type_in(page, "[id$=-stored]", "square")
    press(page, "At a separate time")
    press(page, "At most this long in total")
    type_in(page, ".step-window [id$=-total]", "1")
    choose(page, ".step-window [id$=-total-unit]", "second")
    page.locator(".step-title + .hint", has_text="at most 1 s in all").wait_for()
    tab_to(page, ".step:nth-child(2) .step-open")
    page.keyboard.press("Enter")
    type_in(page, "[id$=-stored]", "square")
    page.keyboard.press("Tab")
    page.locator(".step:nth-child(2) .step-title + .hint", has_text="first of the order").wait_for()
    page.locator(".sentence-text", has_text="and was in square for at most 1 second in all in the last 10 minutes").wait_for()
    assert preview(page, by_keyboard=True) >= 0
    stored = saved(site, "passing", by_keyboard=True)
    total = {"window": ["PT10M", 0], "quantifier": "total", "at_most": "PT1S"}
    assert stored["predicates"] == [{"inside": {"region": "square"}, **total}, {"inside": {"region": "square"}}]
