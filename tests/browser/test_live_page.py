"""Map and timeline of the live page are linked: a selection on the map filters the timeline, a
brushed range on the timeline filters the map."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.answering import Answering
from tests.browser.page_state import PRESENT
from tests.webapp.answers import a_user
from webapp.alerts.models import Alert
from webapp.jobs.models import FeedHead
from webapp.live.access import notify
from webapp.queries.models import Query
from webapp.queries.services import query_edit, query_remove
from webapp.supervisor.sink import FencedWrite, commit
from webapp.supervisor.store import FeedStore

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect

    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]
EVIDENCE = "canvas[data-layer=evidence]"


@pytest.fixture
def live(site: Site) -> Site:
    """The page of the world's feed with answers of its two queries; the timeline shows all event
    time, with the list next to it."""
    site.world.append(500)
    assert Answering(site.world).catch_up() > 20
    site.log_in()
    site.page.goto(f"{site.address}/?feed=yard&window=0~{site.world.t + 500}&at=5~5~5.5")
    site.page.locator(f"{PRESENT}, .state-past").wait_for()
    site.world.wait(lambda: site.page.locator(".query-count", has_text=re.compile(r"\d")).count() == 2, 30, "answers of both queries")
    return site


def show_list(site: Site, is_on: bool = True) -> None:
    button = site.page.get_by_role("button", name="List", exact=True)
    if (button.get_attribute("aria-pressed") == "true") != is_on:
        button.click()


def listed(site: Site) -> list[tuple[str, ...]]:
    """The list's rows: query, kind, entities, from, until, length."""
    show_list(site)
    rows: list[list[str]] = site.page.evaluate(
        "[...document.querySelectorAll('.timeline-list tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText.trim()))"
    )
    return [tuple(row) for row in rows]


def exported(site: Site) -> list[dict[str, str]]:
    """The rows of the CSV file that the list's menu gives."""
    show_list(site)
    site.page.get_by_role("button", name="Export", exact=True).click()
    with site.page.expect_download() as download:
        site.page.get_by_role("menuitem", name="CSV").click()
    return list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))


def box_of(site: Site, selector: str) -> FloatRect:
    found = site.page.locator(selector).first.bounding_box()
    assert found is not None
    return found


def drag(site: Site, start: tuple[float, float], end: tuple[float, float]) -> None:
    mouse = site.page.mouse
    mouse.move(*start)
    mouse.down()
    mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    mouse.move(*end)
    mouse.up()


def asked_for_tracks(site: Site, act: Any) -> dict[str, list[str]]:
    """The parameters of the request for tracks that `act` causes."""
    with site.page.expect_response(re.compile(r"/api/v1/feeds/yard/tracks\?")) as answer:
        act()
    assert answer.value.status == 200
    return parse_qs(urlsplit(answer.value.url).query)


COVERED = """
  ([part, count]) => {
    const place = document.getElementById("toasts");
    const text = "Critical: Somebody who stays in a place that must stay empty — person-12, person-13 · stayed in";
    place.replaceChildren(...Array.from({ length: count }, () => {
      const toast = document.createElement("div");
      toast.className = "toast toast-critical";
      toast.style.animation = "none";
      toast.append(text);
      return toast;
    }));
    const buttons = [...document.querySelectorAll(`${part} :is(a, button)`)].filter((button) => button.checkVisibility());
    if (buttons.length === 0) throw new Error(`no button in ${part}`);
    const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    const boxes = [...place.children].map((toast) => toast.getBoundingClientRect());
    const found = buttons.filter((button) => boxes.some((box) => meets(box, button.getBoundingClientRect()))).map((button) => button.innerText);
    place.replaceChildren();
    return found;
  }
"""


def covered_by_messages(site: Site, part: str) -> list[str]:
    """The buttons in `part` of the page that four messages, the greatest number
    shown at once, would cover."""
    found: list[str] = site.page.evaluate(COVERED, [part, 4])
    return found


def test_messages_do_not_cover_the_buttons_of_an_open_alert(live: Site) -> None:
    page = live.page
    alert = Alert.objects.order_by("pk").first()
    assert alert is not None
    for width, height in ((1440, 900), (1000, 700), (390, 844)):
        live.resize(width, height)
        page.goto(f"{live.address}/alerts/{alert.pk}")
        page.locator(".alert-detail .drawer-foot :is(a, button)").first.wait_for()
        assert covered_by_messages(live, ".alert-detail .drawer-foot") == [], f"{width} wide"
    assert live.faults == []


def test_a_box_on_the_map_filters_the_timeline_by_entity(live: Site) -> None:
    before = listed(live)
    everyone = {who for *_, who, _from, _until, _length in before}
    area = box_of(live, ".live-map .map-canvas")
    middle = (area["x"] + area["width"] / 2, area["y"] + area["height"] / 2)
    live.page.keyboard.down("Shift")
    drag(live, middle, (area["x"] + area["width"] - 6, area["y"] + area["height"] - 60))
    live.page.keyboard.up("Shift")
    live.page.get_by_text(re.compile(r"entit(y|ies) selected")).wait_for()
    chosen = set(parse_qs(urlsplit(_address_with(live, "entity=")).query)["entity"])
    assert 0 < len(chosen) < 40
    live.world.wait(lambda: {row[2] for row in listed(live)} == everyone & chosen, 20, "only the chosen entities' answers are listed")
    assert listed(live) == [row for row in before if row[2] in chosen]
    assert {json.loads(row["entities"])[0] for row in exported(live)} == everyone & chosen
    live.page.keyboard.press("Escape")
    live.world.wait(lambda: listed(live) == before, 20, "all answers are back")
    assert live.faults == []


def _address_with(site: Site, text: str) -> str:
    site.page.wait_for_url(re.compile(re.escape(text)))
    return str(site.page.url)


def test_a_brushed_range_filters_list_and_map_and_can_be_removed(live: Site) -> None:
    before = listed(live)
    show_list(live, False)
    canvas = box_of(live, ".timeline-canvas")
    y = canvas["y"] + 10
    asked = asked_for_tracks(live, lambda: drag(live, (canvas["x"] + 620, y), (canvas["x"] + 660, y + 3)))
    start, end = (int(part) for part in parse_qs(urlsplit(_address_with(live, "range=")).query)["range"][0].split("~"))
    assert (asked["from"], asked["to"]) == ([str(start)], [str(end)])
    inside = listed(live)
    assert 0 < len(inside) < len(before) and set(inside) <= set(before)
    assert set(asked["entity"]) <= {row[2] for row in inside}
    within = exported(live)
    assert within and {json.loads(row["entities"])[0] for row in within} <= {row[2] for row in inside}
    assert all(int(row["start"]) <= end + 1 and (not row["end"] or int(row["end"]) >= start) for row in within)
    live.page.get_by_role("button", name="Clear the time range").click()
    live.world.wait(lambda: listed(live) == before, 20, "all answers are back")
    assert live.faults == []


def test_hovering_an_answer_shows_the_entitys_track_and_selecting_it_shows_its_events(live: Site) -> None:
    page = live.page
    rows = listed(live)
    stay = next(i for i, row in enumerate(rows) if row[1] == "Inside" and row[4])
    row = page.locator(".timeline-list tbody tr").nth(stay)
    assert asked_for_tracks(live, row.hover)["entity"] == [rows[stay][2]]
    row.get_by_role("button").click()
    details = page.get_by_role("complementary", name="Details")
    details.get_by_text("Events that explain it").wait_for()
    shown_numbers = details.locator(".evidence-number").all_inner_texts()
    assert shown_numbers == [str(n + 1) for n in range(len(shown_numbers))] and len(shown_numbers) >= 3
    # The map shows the same numbers, near ones together: "1, 2" or "3–5".
    live.world.wait(
        lambda: _numbers(page.locator(EVIDENCE).get_attribute("data-evidence")) == {int(n) for n in shown_numbers}, 20, "the events on the map"
    )
    for width, height in ((1440, 900), (1000, 700), (390, 844)):
        live.resize(width, height)
        assert covered_by_messages(live, ".live-drawer") == [], f"{width} wide"
    # On a narrow page the list of queries is also over the map.
    page.locator(".live-body[data-side=open]").wait_for()
    for width in (1180, 1000, 880):
        live.resize(width, 700)
        for part in (".live-side .drawer-foot", ".live-drawer .drawer-foot"):
            assert covered_by_messages(live, part) == [], f"{part}, {width} wide"
    live.resize(1440, 900)
    # Conversely, the timeline's marks also react to the pointer.
    page.keyboard.press("Escape")
    show_list(live, False)
    canvas = box_of(live, ".timeline-canvas")
    # The pointer passed over rows of the list: their requests must be answered first.
    page.wait_for_load_state("networkidle")
    asked = asked_for_tracks(live, lambda: _find_interval(live, canvas))
    assert len(asked["entity"]) == 1
    page.locator(".live-timeline .timeline-tip", has_text=asked["entity"][0]).wait_for()
    assert live.faults == []


def _numbers(text: str | None) -> set[int]:
    found: set[int] = set()
    for part in re.split(r"[, ]+", text or ""):
        first, _, last = part.partition("–")
        if first:
            found |= set(range(int(first), int(last or first) + 1))
    return found


def _find_interval(site: Site, canvas: FloatRect) -> None:
    """Moves the pointer over the first lanes until the timeline shows the interval under it."""
    for y in range(66, int(canvas["height"]) - 4, 10):
        for x in range(240, int(canvas["width"]) - 40, 12):
            site.page.mouse.move(canvas["x"] + x, canvas["y"] + y)
            if site.page.locator(".live-timeline .timeline-tip").is_visible():
                return
    raise AssertionError("no interval under the pointer anywhere")


def test_a_selected_entity_shows_its_last_report_and_its_answers(live: Site) -> None:
    last = max(live.world.log.tail(0).to_pylist(), key=lambda row: row["t"])
    live.page.goto(f"{live.address}/?feed=yard&entity={last['entity']}&at=5~5~5.5")
    card = live.page.get_by_role("region", name="The chosen entity")
    card.get_by_role("heading", name=last["entity"], exact=True).wait_for()
    card.get_by_text("Last report").wait_for()
    card.get_by_text(f"{last['x']:.1f}, {last['y']:.1f}").wait_for()
    card.get_by_role("button", name=f"Stop following {last['entity']}").click()
    card.wait_for(state="hidden")
    # The map had followed the chosen entity.
    live.page.goto(f"{live.address}/?feed=yard&at=5~5~5.5")
    live.page.locator(".leaflet-container").wait_for()
    tip = live.page.locator(".map-tip", has_text="Click to follow it")
    # The entities may be drawn after the map and its regions: the pointer moves a
    # little until it finds one.
    for move in range(MOVES):
        point_at_an_entity(live, aside=move % 2)
        live.page.wait_for_timeout(100)
        if tip.is_visible():
            break
    tip.get_by_text("Last report: ").wait_for()
    assert live.faults == []


MOVES = 300


def point_at_an_entity(site: Site, aside: int) -> None:
    """Moves the pointer to the last position of the entity nearest to the middle of the map, or
    `aside` pixels from it; the map shows (5, 5) at zoom 5.5."""
    rows = sorted(site.world.log.tail(0).to_pylist(), key=lambda row: row["t"])
    last = {row["entity"]: (row["x"] - 5, row["y"] - 5) for row in rows}
    x, y = min(last.values(), key=lambda place: max(map(abs, place)))
    box = site.page.locator(".leaflet-container").bounding_box()
    assert box is not None
    scale = 2**5.5
    site.page.mouse.move(box["x"] + box["width"] / 2 + x * scale + aside, box["y"] + box["height"] / 2 - y * scale)


def test_a_query_that_is_switched_off_has_no_open_answers(live: Site) -> None:
    world, page = live.world, live.page
    page.goto(f"{live.address}/?feed=yard&span={world.t + 500}&at=5~5~5.5")
    row = page.locator(".query-item", has_text="crossings")
    row.get_by_text(re.compile(r"\d+ now")).wait_for()
    off = query_edit(query=world.crossings, user=a_user(), enabled=False)
    head = FeedHead.objects.get(feed=world.feed)
    left = [(off.pk, off.version)]
    assert commit(FencedWrite(world.feed.pk, head.epoch, head.checkpoint, None, left=left))
    row.get_by_text(re.compile(r"\d+ now")).wait_for(state="detached")
    assert live.faults == []


def test_a_query_that_is_removed_leaves_the_page(live: Site) -> None:
    world, page = live.world, live.page
    page.goto(f"{live.address}/?feed=yard&span={world.t + 500}&at=5~5~5.5")
    row = page.locator(".query-item", has_text="crossings")
    row.get_by_text(re.compile(r"\d+ now")).wait_for()
    left = [(world.crossings.pk, world.crossings.version)]
    query_remove(query=world.crossings, user=a_user())
    head = FeedHead.objects.get(feed=world.feed)
    assert commit(FencedWrite(world.feed.pk, head.epoch, head.checkpoint, None, left=left))
    row.wait_for(state="detached")
    assert live.faults == []


def test_queries_that_are_gone_leave_the_page_with_a_new_snapshot(live: Site) -> None:
    """One is removed without an update, because its job does not run; the other is no longer
    shared."""
    world, page = live.world, live.page
    query_remove(query=world.crossings, user=a_user())
    Query.objects.filter(pk=world.stays.pk).update(owner=a_user("eve"), public=False, team=None)
    notify()
    page.locator(".query-item").first.wait_for(state="detached")
    assert live.faults == []


def test_queries_that_read_the_history_show_how_far_they_are(site: Site) -> None:
    """Until then the page must not claim that there are no answers."""
    world = site.world
    world.append(500)
    new = Query.objects.order_by("-pk")[0]
    store = FeedStore(world.feed, FeedHead.objects.get(feed=world.feed).epoch)
    store.catching_up([str(new.pk)], 250, 1000)
    site.log_in()
    site.page.goto(f"{site.address}/?feed=yard")
    entry = site.page.get_by_role("list", name="Queries on this feed").get_by_role("listitem").filter(has_text=new.name)
    entry.get_by_text("Reading the history: 25 %").wait_for()
    site.page.get_by_text("New queries are reading the history.").wait_for()
    store.caught_up()
    entry.get_by_text("Reading the history").wait_for(state="detached")
    site.page.get_by_text("No answers yet. They appear here as they are found.").wait_for()
