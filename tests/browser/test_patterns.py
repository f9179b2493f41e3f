"""An analyst writes motion patterns and constraint queries: steps moved by keyboard; the short
form, its graph and its text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services, pytest.mark.slow]

SQUARES = {"west": 0.0, "middle": 20.0, "east": 40.0}


@pytest.fixture
def yard(site: Site) -> Site:
    """Three stored squares, one walker who has crossed them in order and
    one who is in the second."""
    from webapp.feeds.services import region_create

    feed = site.world.feed
    for name, x in SQUARES.items():
        corners = [[x, 0], [x + 9, 0], [x + 9, 9], [x, 9], [x, 0]]
        region_create(owner=feed.owner, feed=feed, name=name, geometry={"type": "Polygon", "coordinates": [corners]})
    site.log_in()
    return site


def test_a_motion_pattern_and_a_constraint_query_are_written_and_saved(yard: Site) -> None:
    _motion(yard)
    _constraint(yard)
    yard.page.close()
    assert yard.faults == []


def _stored(name: str) -> Any:
    from webapp.queries.models import Query

    return Query.objects.get(name=name).specification


def _motion(site: Site) -> None:
    """Three steps, the last one moved to the front by Alt and the arrow
    key; the sentence follows."""
    page = site.page
    page.goto(site.address + "/queries/new?feed=yard&family=motion")
    page.locator("#add-step").click()
    cards = page.locator(".step-card")
    for i, name in enumerate(["middle", "east", "west"]):
        if "is-active" not in (cards.nth(i).get_attribute("class") or ""):
            cards.nth(i).locator(".step-open").click()
        page.get_by_label("Stored region").fill(name)
        page.keyboard.press("Tab")
        page.locator(".step-title", has_text=f"Inside {name}").wait_for()
    page.locator(".step-card", has_text="Inside west").locator(".step-open").focus()
    page.keyboard.press("Alt+ArrowUp")
    page.keyboard.press("Alt+ArrowUp")
    assert page.locator(".step-title").all_inner_texts() == ["Inside west", "Inside middle", "Inside east"]
    assert page.evaluate("document.activeElement.closest('.step-card').innerText").startswith("Inside west"), "the focus goes with the step"
    page.locator(".sentence-text", has_text=re.compile(r"west.*middle.*east")).wait_for()
    page.fill("#query-name", "west to east")
    page.get_by_role("button", name="Register query").click()
    page.wait_for_url(re.compile(r"/\?feed=yard"))
    assert _stored("west to east")["predicates"] == [{"inside": {"region": name}} for name in SQUARES]


def _constraint(site: Site) -> None:
    """Three close readings by the short form; a bound of the graph that two others imply is
    dotted; the text is saved."""
    page = site.page
    page.goto(site.address + "/queries/new?feed=yard&family=constraint")
    page.locator("#mutual-count").fill("3")
    page.locator("#mutual-distance").fill("5")
    page.locator(".graph-node").nth(2).wait_for()
    assert page.locator(".graph-edge:not(.inferred)").count() == 3
    page.locator(".sentence-text").wait_for()
    page.get_by_role("button", name="Graph", exact=True).click()
    page.get_by_role("button", name="1: V1, V2, V3").click()
    page.get_by_role("checkbox", name="V3").first.uncheck()
    page.locator("#add-constraint").click()
    page.get_by_role("checkbox", name="V1").first.uncheck()
    page.get_by_role("checkbox", name="V3").first.check()
    page.get_by_label("V1 and V3:").and_(page.locator(".inferred")).wait_for()
    _conflict(site)
    page.get_by_role("button", name="Text", exact=True).click()
    text = page.locator("#trigger-text").input_value()
    assert "V3.t - V2.t IN [0, " in text and "DISTANCE(V1.r, V2.r) <= 5" in text
    page.locator("#trigger-text").fill(text.replace("V3.t - V2.t", "V3.t - V9.t"))
    page.locator(".trigger-fault", has_text="V9").wait_for()
    page.locator("#trigger-text").fill(text.replace("SYMMETRIC (V1, V2, V3)\n", ""))
    page.locator(".trigger-fault").wait_for(state="detached")
    page.locator(".sentence-text").wait_for()
    page.fill("#query-name", "close readings")
    page.get_by_role("button", name="Register query").click()
    page.wait_for_url(re.compile(r"/\?feed=yard"))
    assert _stored("close readings")["trigger"].startswith("CREATE TRIGGER")


def _conflict(site: Site) -> None:
    """A third bound that contradicts the other two is red in the graph until it is removed."""
    page = site.page
    page.locator("#add-constraint").click()
    page.get_by_role("checkbox", name="V2").first.uncheck()
    page.get_by_role("checkbox", name="V3").first.check()
    page.locator("#dt-low").fill("2")
    page.locator("#dt-low-unit").select_option("d")
    page.locator("#dt-high").fill("")
    page.get_by_text("No events can satisfy this").wait_for()
    assert page.locator(".graph-edge.conflict").count() == 3
    page.get_by_role("button", name="Remove this constraint").click()
    page.get_by_text("No events can satisfy this").wait_for(state="detached")
