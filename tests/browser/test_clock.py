"""One clock: map, timeline, counts and the bar show the same instant, live or past."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.answering import Answering
from tests.browser.page_state import PRESENT

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]


class Watched:
    """The live page of the world's feed, with a job that is run on demand."""

    def __init__(self, site: Site) -> None:
        self.site, self.page, self.world = site, site.page, site.world
        self.answering = Answering(site.world)

    def more(self, rows: int = 300) -> None:
        self.world.append(rows)
        self.answering.catch_up()

    def state(self) -> dict[str, Any]:
        """The page's display of its instant: clock, chip, field, marked entities on the map, counts
        of the panel, address."""
        return dict(
            self.page.evaluate(
                """() => ({
                    clock: document.querySelector(".clock strong").innerText,
                    chip: document.querySelector(".state").innerText,
                    when: document.querySelector(".when").value,
                    marked: document.querySelector("canvas[data-layer=entities]").dataset.marked,
                    open: [...document.querySelectorAll(".query-count .query-meta")].map((one) => one.innerText),
                })"""
            )
        )

    def settled(self) -> dict[str, Any]:
        """The state after it has not changed for two seconds: on a busy machine
        the map may be drawn late."""
        found, same = self.state(), 0
        for _ in range(60):
            self.page.wait_for_timeout(500)
            before, found = found, self.state()
            same = same + 1 if found == before else 0
            if same == 4:
                return found
        raise AssertionError(f"the page does not come to rest: {found}")

    def button(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()


@pytest.fixture
def watched(site: Site) -> Watched:
    made = Watched(site)
    made.more(500)
    site.log_in()
    site.page.goto(f"{site.address}/?feed=yard&span=4000&at=5~5~5.5")
    site.page.locator(PRESENT).wait_for()
    site.world.wait(lambda: site.page.locator(".query-count .query-meta").count() > 0, 30, "an answer holds")
    return made


def test_pausing_stops_every_clock_and_live_continues(watched: Watched) -> None:
    watched.button("Pause (space)")
    watched.page.locator(".state-past", has_text="Paused").wait_for()
    # A stay is known only when it has ended, then also for instants long past.
    watched.page.get_by_label("Show stays").uncheck()
    # The feed's lateness is a second, and the present is ahead of the rows by up to one and a half
    # seconds: this instant is final.
    watched.page.locator(".when").fill("-3 seconds")
    watched.page.locator(".when").press("Enter")
    before = watched.settled()
    assert before["marked"] and before["open"]
    watched.more()
    watched.page.wait_for_timeout(1000)
    after = watched.settled()
    assert (after.pop("open")[0], after) == (before.pop("open")[0], before)
    watched.page.keyboard.press("l")
    watched.page.locator(PRESENT).wait_for()
    watched.world.wait(lambda: watched.state()["clock"] != before["clock"] or watched.state()["marked"] != before["marked"], 20, "the page is live")
    assert watched.site.faults == []


def test_dragging_the_timeline_moves_map_and_clock_and_a_link_restores_the_instant(watched: Watched) -> None:
    page = watched.page
    box = page.locator(".timeline-canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 500, box["y"] + box["height"] - 12)
    page.mouse.down()
    page.mouse.move(box["x"] + 700, box["y"] + box["height"] - 12, steps=4)
    page.mouse.up()
    page.mouse.move(5, 5)
    page.locator(".state-past").wait_for()
    page.wait_for_url(re.compile(r"[?&]t=\d+"))
    here = watched.settled()
    second = watched.site.context.new_page()
    second.goto(page.url)
    second.locator(".state-past").wait_for()
    other = Watched(watched.site)
    other.page = second
    watched.world.wait(lambda: other.state() == here, 20, f"the link shows the same as {here}")
    assert second.get_by_role("button", name="Live", exact=True).get_attribute("aria-pressed") == "false"
    second.get_by_role("button", name="Play (space)", exact=True).wait_for()
    second.close()
    assert watched.site.faults == []


def test_zooming_out_keeps_the_view_live_and_shows_little_future(watched: Watched) -> None:
    for _ in range(4):
        watched.page.keyboard.press("s")
    watched.page.wait_for_timeout(500)
    watched.page.locator(PRESENT).wait_for()
    assert "window=" not in watched.page.url


def test_playback_of_the_past_ends_in_the_present(watched: Watched) -> None:
    page = watched.page
    page.locator(".when").fill("-4 seconds")
    page.locator(".when").press("Enter")
    page.locator(".state-past", has_text="Paused").wait_for()
    page.get_by_label("Playback speed").select_option("5")
    page.keyboard.press("Escape")
    page.locator(".timeline-canvas").focus()
    page.keyboard.press("Space")
    page.locator(".state-past", has_text="Playing 5×").wait_for()
    page.locator(PRESENT).wait_for()
    assert watched.site.faults == []


def test_an_invalid_time_is_refused_with_examples(watched: Watched) -> None:
    watched.page.locator(".when").fill("some day")
    watched.page.locator(".when").press("Enter")
    watched.page.get_by_text("yesterday 14:00").wait_for()


def test_the_tabulator_key_reaches_the_map(watched: Watched) -> None:
    page = watched.page
    page.goto(page.url)
    page.locator(PRESENT).wait_for()
    stops = []
    while "Skip to the map" not in stops and len(stops) < 15:
        page.keyboard.press("Tab")
        stops.append(page.evaluate("document.activeElement.innerText"))
    assert stops[-1] == "Skip to the map", stops
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.classList.contains('map-canvas')")


def test_nothing_overflows_on_a_phone(watched: Watched) -> None:
    page = watched.page
    watched.site.resize(390)
    page.evaluate("document.querySelector('.state').innerText = 'No news for 30 seconds'")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_legend_explains_the_marks(watched: Watched) -> None:
    watched.button("What the marks mean")
    watched.page.get_by_role("dialog").get_by_text("hatched").wait_for()
