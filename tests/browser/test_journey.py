"""An analyst's first minutes against the real job: draw, preview, register, see answers,
acknowledge, lose nothing when the server restarts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.page_state import PRESENT

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services, pytest.mark.spark, pytest.mark.slow]


def test_draw_preview_register_see_acknowledge_and_reconnect(site: Site) -> None:
    world, page = site.world, site.page
    world.append(600)
    world.start_job()
    world.wait_caught_up()
    site.log_in()
    _draw_and_preview(site)
    _register(site)
    _see_new_answers(site)
    _acknowledge(site)
    _reconnect(site)
    page.close()
    assert site.faults == []


def _draw_and_preview(site: Site) -> None:
    page = site.page
    page.goto(site.address + "/queries/new?feed=yard")
    page.get_by_role("button", name="Draw a rectangle").wait_for()
    page.evaluate("document.querySelector('.query-map').scrollIntoView()")
    page.get_by_role("button", name="Draw a rectangle").click()
    box = page.locator(".query-map .leaflet-container").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.click(x + 1, y - 1)
    page.mouse.move(x + 30, y - 30)
    page.mouse.click(x + 60, y - 60)
    page.get_by_text("Polygon, 4 corners").wait_for()
    # The walkers' plane is ten units wide, a few pixels at this zoom: the exact corners are typed.
    page.get_by_text("Corners as numbers").click()
    for corner, (cx, cy) in enumerate([(3, 3), (9, 3), (9, 9), (3, 9)], start=1):
        for axis, value in (("x", cx), ("y", cy)):
            field = page.get_by_label(f"Corner {corner}, {axis}", exact=True)
            field.fill(str(value))
            field.press("Tab")
    page.locator(".sentence-text").wait_for()
    site.world.wait(lambda: _previewed(site), 60, "a preview")
    assert int(page.locator(".preview-total").inner_text().replace(",", "")) > 0


def _previewed(site: Site) -> bool:
    """Requests a preview. Returns whether it came: on a busy machine it may
    exceed the server's time limit."""
    page = site.page
    page.get_by_role("button", name="Preview", exact=True).click()
    page.locator(".preview-total, .preview-result .empty").wait_for()
    return page.locator(".preview-total").count() > 0


def _register(site: Site) -> None:
    from webapp.queries.models import Query

    page = site.page
    page.fill("#query-name", "corner of the yard")
    page.get_by_label("Open an alert when something enters").check()
    page.get_by_role("button", name="Register query").click()
    page.wait_for_url(re.compile(r"/\?feed=yard"))
    stored = Query.objects.get(name="corner of the yard")
    assert stored.alert_kinds == ["in"] and stored.specification["region"]["type"] == "Polygon"
    page.locator(".query-name", has_text="corner of the yard").wait_for()


def _count(site: Site) -> int:
    text = site.page.locator(".query-item", has_text="corner of the yard").locator(".query-count > div").first.inner_text()
    return 0 if text == "–" else int(text.replace(",", ""))


def _see_new_answers(site: Site) -> None:
    """New answers of the new query come by the socket: on the timeline, in its
    list, and with their evidence."""
    world, page = site.world, site.page
    world.append(300)
    world.wait_caught_up()
    world.wait(lambda: _count(site) > 0, 60, "the answers are counted next to the map")
    page.locator(PRESENT).wait_for()
    page.keyboard.press("j")
    page.get_by_role("complementary", name="Details").get_by_text("Events that explain it").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="List").click()
    page.get_by_role("table").get_by_role("row").nth(1).wait_for()
    page.get_by_role("button", name="List").click()


def _acknowledge(site: Site) -> None:
    from webapp.alerts.models import Alert

    page, world = site.page, site.world
    world.wait(lambda: Alert.objects.filter(query__name="corner of the yard").exists(), 60, "an alert of the new query")
    page.goto(site.address + "/alerts/")
    page.locator("tr[data-alert]").first.click()
    chosen = int(page.locator("tr[aria-selected=true]").get_attribute("data-alert") or 0)
    page.get_by_role("region", name="Alert").get_by_role("button", name="Acknowledge").click()
    page.get_by_role("region", name="Alert").get_by_text("acknowledged it").wait_for()
    row = Alert.objects.get(pk=chosen)
    # The alert's interval may have ended before; then the alert is resolved.
    assert row.state == ("acknowledged" if row.over_at is None else "resolved")
    assert row.acknowledged_by is not None and row.acknowledged_by.username == "ada"


def _shown(site: Site) -> int:
    """The number of answers on the page, over all queries, as the sum of the list's numbers: these
    count the in and out of a stay as one."""
    texts = site.page.locator(".query-count > div:first-child").all_inner_texts()
    return sum(0 if text == "–" else int(text.replace(",", "")) for text in texts)


def _reconnect(site: Site) -> None:
    """The server dies, further answers are found, the server restarts: the page reaches the same
    state as a newly loaded one."""
    world, page = site.world, site.page
    page.goto(site.address + "/?feed=yard")
    page.locator(PRESENT).wait_for()
    world.wait(lambda: _shown(site) > 0, 60, "answers")
    before = _shown(site)
    site.kill_web()
    page.locator(".state-reconnecting").wait_for()
    world.append(400)
    world.wait_caught_up()
    site.start_web()
    page.locator(PRESENT).wait_for()
    world.wait(lambda: _shown(site) > before, 60, "what was missed is fetched")
    other = site.context.new_page()
    other.goto(site.address + "/?feed=yard")
    other.locator(PRESENT).wait_for()

    def fresh() -> list[str]:
        return other.locator(".query-count > div:first-child").all_inner_texts()

    world.wait(lambda: fresh() != [] and fresh() == page.locator(".query-count > div:first-child").all_inner_texts(), 60, "both pages show the same")
    other.close()
