"""An analyst explores the past by keyboard only: from the live strait ten minutes back, played
until a pursuit begins, which is followed, explained, and shared with a colleague by a link.

With VEDETTE_SCREENSHOTS set, a screenshot of each second is written to that folder:
`story-000.png` and so on.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.answering import Answering
from tests.browser.forms import tab_to
from tests.browser.page_state import PRESENT

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Site
    from webapp.feeds.models import Feed

pytestmark = [pytest.mark.browser, pytest.mark.services]

MINUTE = 60_000
SEARCHED_FROM = 1_763_700_000_000
HISTORY, BEFORE_PURSUIT, AGO = 18 * MINUTE, 3 * MINUTE, 10 * MINUTE
"""The log's length; the time from the chosen instant to the start of the pursuit; the time from the
chosen instant to the present."""
QUERY = "Pursuits and meetings at sea"
PIXEL = 360 / 2**17
"""Degrees that one pixel of the map shows at the zoom of the story."""
SHARE = 5
"""One in this many vessels is simulated: a map with traffic, and few rows."""


class Recorder:
    """Screenshots of a page, one each second, if a folder for them is set."""

    def __init__(self, page: Page) -> None:
        self.page, self.folder, self.taken, self.next_at = page, os.environ.get("VEDETTE_SCREENSHOTS"), 0, time.monotonic()

    def frame(self) -> None:
        if self.folder and time.monotonic() >= self.next_at:
            self.page.screenshot(path=f"{self.folder}/story-{self.taken:03}.png")
            self.taken += 1
            self.next_at = time.monotonic() + 1

    def until(self, shown: Any, what: str) -> None:
        """Waits until the page shows `shown`."""
        for _ in range(600):
            self.frame()
            if shown():
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"never seen: {what}")


def strait(site: Site) -> tuple[Feed, tuple[str, ...]]:
    """The demo's strait, eighteen minutes of a few vessels, with its query about pursuits; and the
    entities of a pursuit shortly before the end."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from django.conf import settings

    from engine.model.events import check_rows
    from engine.sources.eventlog import EventLog
    from webapp.demo.simulation.scenarios import read_scenario
    from webapp.feeds.services import feed_create, region_create
    from webapp.queries.families import kinds_of
    from webapp.queries.services import query_register

    scenario, owner = read_scenario("strait"), site.world.feed.owner
    feed = feed_create(owner=owner, **scenario.feed)
    for place in scenario.places:
        region_create(owner=owner, feed=feed, name=place.name, geometry=place.geometry, tags=place.tags)
    wanted = next(query for query in scenario.queries if query["name"] == QUERY)
    query_register(
        owner=owner,
        feed=feed,
        alert_kinds=kinds_of(wanted["specification"]),
        **{key: value for key, value in wanted.items() if key not in ("truth", "alert_kinds")},
    )
    truth = scenario.world.truth(SEARCHED_FROM, SEARCHED_FROM + 90 * MINUTE)
    pursuit = next(one for one in truth if one.kind == "pursuit" and one.start > SEARCHED_FROM + HISTORY)
    present = pursuit.start - BEFORE_PURSUIT + AGO
    rows = scenario.world.rows(present - HISTORY, present)
    who = pc.unique(rows["entity"]).to_pylist()
    sailing = {*who[::SHARE], *pursuit.entities}
    good, dead = check_rows(rows.filter(pc.is_in(rows["entity"], value_set=pa.array(sorted(sailing)))), feed.engine_feed())
    assert not dead
    answering = Answering(site.world, feed)
    EventLog(settings.EVENT_LOG_ROOT, feed.name).append(good)
    assert answering.catch_up()
    return feed, pursuit.entities


def press_in(page: Page, part: str, text: str) -> None:
    """Tabs to the control with `text` in a part of the page, and presses Enter."""
    found = "([part, text]) => { const at = document.activeElement; return at?.closest(part) !== null && at?.innerText.trim().startsWith(text) }"
    for _ in range(120):
        if page.evaluate(found, [part, text]):
            page.keyboard.press("Enter")
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{text} in {part} cannot be reached by Tab")


def test_a_pursuit_ten_minutes_ago_is_found_replayed_explained_and_shared_by_keyboard(site: Site) -> None:
    feed, pair = strait(site)
    page = site.page
    site.context.grant_permissions(["clipboard-read", "clipboard-write"])
    seen = Recorder(page)
    _log_in(site)
    page.locator(".feed-switch").wait_for()
    seen.frame()

    # The live strait.
    tab_to(page, ".feed-switch")
    page.keyboard.press("Enter")
    press_in(page, "[role=menu]", feed.title)
    page.locator(PRESENT).wait_for()
    row = page.locator(".query-item", has_text=QUERY)
    row.wait_for()
    seen.frame()

    # Ten minutes back.
    tab_to(page, ".when")
    page.keyboard.press("Control+A")
    page.keyboard.type("-10 min")
    page.keyboard.press("Enter")
    page.locator(".state-past", has_text="Paused").wait_for()
    seen.until(lambda: row.locator(".query-meta", has_text="then").count() == 0, "no pursuit yet")

    # Sixty times as fast, until one begins.
    for _ in range(2):
        page.keyboard.press(">")
    page.keyboard.press("Space")
    page.locator(".state-past", has_text="Playing 60×").wait_for()
    seen.until(lambda: row.locator(".query-count .query-meta", has_text="then").count() > 0, "a pursuit begins")
    page.keyboard.press("Space")
    page.locator(".state-past", has_text="Paused").wait_for()

    # It, and who is in it.
    page.keyboard.press("j")
    details = page.get_by_role("complementary", name="Details")
    details.get_by_role("heading", name=re.compile("pursuit", re.IGNORECASE)).wait_for()
    seen.frame()
    press_in(page, ".live-drawer", pair[0])
    page.get_by_role("region", name="The chosen entity").get_by_role("heading", name=pair[0], exact=True).wait_for()
    seen.frame()

    # Followed: two minutes later it is still in sight.
    before = _clock(page)
    page.locator(".timeline-canvas").focus()
    page.keyboard.press("Space")
    seen.until(lambda: _clock(page) - before >= 2 * 60, "two minutes pass")
    page.keyboard.press("Space")
    page.locator(".state-past", has_text="Paused").wait_for()
    assert details.is_visible()

    # The link for a colleague, whose browser shows the same.
    page.keyboard.press("c")
    page.get_by_text("The link to this view is copied.").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    mine = _view(page, copied)
    assert mine["entity"] == pair[0] and "pursuit" in mine["answer"].lower()
    with _colleague(site, copied) as theirs:
        with suppress(AssertionError):
            seen.until(lambda: _view(theirs, theirs.url) == mine, "the same view")
        assert _view(theirs, theirs.url) == mine
        assert _centre(theirs.url) == pytest.approx(_centre(copied), abs=PIXEL)
        if seen.folder:
            theirs.screenshot(path=f"{seen.folder}/story-link.png")

    # Its evidence: the rules that it came from, tried on what led to it.
    tab_to(page, ".rules-behind a")
    page.keyboard.press("Enter")
    page.locator(".sandbox-detail", has_text="line").first.wait_for()
    seen.frame()
    assert site.faults == []


def _view(page: Page, address: str) -> dict[str, str]:
    """The state of a page: the moment, the answer, the entity, the number of each query's answers,
    and, from its address, the timeline's extent."""
    heading = page.get_by_role("complementary", name="Details").get_by_role("heading").first
    entity = page.get_by_role("region", name="The chosen entity").get_by_role("heading").first
    counts = page.locator(".query-item .query-count")
    return {
        "clock": page.locator(".clock strong").inner_text(),
        "answer": heading.inner_text(),
        "entity": entity.inner_text(),
        "counts": " ".join(counts.all_inner_texts()),
        "window": parse_qs(urlsplit(address).query)["window"][0],
    }


def _centre(address: str) -> list[float]:
    """Longitude, latitude and zoom of the map in an address."""
    return [float(number) for number in parse_qs(urlsplit(address).query)["at"][0].split("~")]


@contextmanager
def _colleague(site: Site, link: str) -> Iterator[Page]:
    """Another browser, with the same log-in, that opens the link."""
    with closing(site.context.browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")) as context:  # type: ignore[union-attr]
        context.add_cookies(site.context.cookies())  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(link)
        page.locator(".state-past").wait_for()
        page.get_by_role("complementary", name="Details").wait_for()
        yield page


def _clock(page: Page) -> int:
    """Seconds of the day."""
    hours, minutes, seconds = map(int, page.locator(".clock strong").inner_text()[:8].split(":"))
    return 3600 * hours + 60 * minutes + seconds


def _log_in(site: Site) -> None:
    from tests.browser.conftest import PASSWORD

    page = site.page
    page.goto(site.address + "/login/")
    page.keyboard.type("ada")
    tab_to(page, "#password")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(site.address + "/**")
