"""The desk by keyboard, in two windows at once, without a connection, and
with the browser's way back."""

from __future__ import annotations

import csv
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client

from tests.browser.conftest import PASSWORD
from tests.browser.forms import page_asks, slow_network, tab_to
from tests.browser.test_alerts import come, make
from tests.browser.test_limits import shot
from tests.webapp.answers import a_feed, a_head
from webapp.accounts.models import Membership, Role, Team, User
from webapp.alerts.handling import Decision, alerts_decide
from webapp.alerts.models import Alert, AlertStep, Mute, Step
from webapp.feeds.models import Feed
from webapp.jobs.models import Job, ObservedState
from webapp.queries.models import Query
from webapp.queries.services import query_remove

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Locator, Page

    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]

FOCUSED = "document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.innerText ?? ''"


def opened(site: Site, count: int) -> Page:
    """The desk with alerts of this many walkers; the last is the first of the list."""
    a_head(site.world.feed)
    make(site, count)
    site.log_in()
    site.page.goto(site.address + "/alerts/")
    site.page.locator("tr[data-alert]").first.wait_for()
    return site.page


def what_happened(page: Page, title: str) -> None:
    page.get_by_role("heading", name=title).wait_for()
    page.get_by_role("heading", name="What happened").wait_for()


def test_by_tab_from_the_name_to_the_password(site: Site) -> None:
    page = site.page
    page.goto(site.address + "/login/")
    page.keyboard.type("ada")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.locator(".rail").wait_for()


def test_the_focus_stays_where_the_keys_are(site: Site) -> None:
    page = opened(site, 8)
    watch = Team.objects.get(name="watch")
    for owned in (Feed.objects.filter(pk=site.world.feed.pk), Query.objects.filter(pk=site.world.crossings.pk)):
        owned.update(team=watch)
    for name in ("ben", "cleo"):
        Membership.objects.create(user=User.objects.create_user(name), team=watch, role=Role.OPERATOR)

    tab_to(page, "tr[data-alert] input")
    page.keyboard.press("Space")
    page.get_by_text("1 chosen").wait_for()
    assert page.evaluate(FOCUSED) == "Choose walker 7"
    tab_to(page, ".desk-tabs button")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".desk-tabs button[aria-pressed=true]", has_text="Unattended").wait_for()
    assert page.evaluate(FOCUSED) == "Unattended"

    # Into the alert and back to its row.
    page.locator("tr[data-alert]").first.wait_for()
    tab_to(page, "tr[data-alert] button")
    page.keyboard.press("Enter")
    what_happened(page, "walker 7: entered")
    assert page.evaluate(FOCUSED) == "Alert"
    page.keyboard.press("Escape")
    page.wait_for_function(f"({FOCUSED}) === 'walker 7'")

    # A comment, above the buttons, and out of it again.
    page.keyboard.press("j")
    what_happened(page, "walker 7: entered")
    page.keyboard.press("c")
    field = page.get_by_label("Comment", exact=True)
    covered = """(field) => {
      const box = field.getBoundingClientRect();
      return document.elementFromPoint(box.x + 9, box.y + box.height / 2) !== field;
    }"""
    assert not field.evaluate(covered)
    page.keyboard.type("Cutter is on its way")
    page.keyboard.press("Escape")

    # Arrow keys choose; only Enter gives it to somebody.
    tab_to(page, ".assign")
    page.keyboard.press("Enter")
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    assert page.evaluate(FOCUSED) == "cleo"
    newest = Alert.objects.order_by("-pk")[0]
    assert newest.assignee is None
    page.keyboard.press("Enter")
    page.locator(".steps").get_by_text("Cutter is on its way").wait_for()
    newest.refresh_from_db()
    assert newest.assignee is not None and newest.assignee.username == "cleo"
    assert page.evaluate(FOCUSED) == "Alert"
    tab_to(page, ".alert-detail .button-primary")
    page.keyboard.press("Enter")
    page.locator(".steps").get_by_text("acknowledged it").wait_for()
    assert page.evaluate(FOCUSED) == "Alert"
    assert site.faults == []


def test_what_others_do_is_shown_and_takes_no_text_away(site: Site) -> None:
    page = opened(site, 3)
    page.keyboard.press("j")
    what_happened(page, "walker 2: entered")
    newest = Alert.objects.order_by("-pk")[0]
    page.locator(".alert-state", has_text="Seen").wait_for()
    page.get_by_label("Comment", exact=True).fill("Asked the harbour")
    alerts_decide(alerts=[newest], decision=Decision(Step.ACKNOWLEDGED, User.objects.create_superuser("grace")))
    page.locator(".steps").get_by_text("acknowledged it").wait_for()
    assert page.locator(".alert-state").inner_text() == "Acknowledged by grace"
    assert page.get_by_label("Comment", exact=True).input_value() == "Asked the harbour"
    page.get_by_role("button", name="Right", exact=True).click()
    page.locator(".alert-detail").get_by_text("ada right").wait_for()
    assert page.get_by_label("Comment", exact=True).input_value() == "Asked the harbour"


def test_an_open_alert_of_a_query_that_is_removed_offers_no_decision(site: Site) -> None:
    page = opened(site, 2)
    page.keyboard.press("j")
    what_happened(page, "walker 1: entered")
    page.get_by_role("button", name="Acknowledge", exact=True).wait_for()
    page.locator(".alert-state", has_text="Seen").wait_for()
    query_remove(query=site.world.crossings, user=User.objects.get(username="ada"))
    page.get_by_text("Its query was removed").wait_for()
    assert page.get_by_role("button", name="Acknowledge", exact=True).count() == 0
    assert page.locator(".alert-head").get_by_role("link").count() == 0, "there is no page of the query"


def test_by_keyboard_nothing_is_sent_twice_and_the_focus_is_not_lost(site: Site) -> None:
    page = opened(site, 2)
    page.keyboard.press("j")
    what_happened(page, "walker 1: entered")
    with slow_network(page):
        comment = page.get_by_label("Comment", exact=True)
        comment.fill("Asked the harbour")
        press_twice(page, page.get_by_role("button", name="Comment", exact=True))
        page.locator(".steps").get_by_text("Asked the harbour").wait_for()
        assert page.evaluate(FOCUSED) == "Comment"
        press_twice(page, page.get_by_role("button", name="False alarm"))
        page.locator(".alert-detail").get_by_text("ada false alarm").wait_for()
        assert page.evaluate(FOCUSED) == "False alarm"
        page.get_by_role("button", name="Mute…").press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Reason").last.fill("Works on the quay")
        press_twice(page, dialog.get_by_role("button", name="Mute"))
        page.get_by_text("Muted.", exact=True).wait_for()
    page.wait_for_timeout(1_000)
    assert AlertStep.objects.filter(text="Asked the harbour").count() == 1 and Mute.objects.count() == 1
    page.get_by_role("button", name="Mutes").press("Enter")
    page.get_by_role("button", name="Lift").press("Enter")
    page.locator(".mutes").get_by_text("ended").wait_for()
    assert page.evaluate("() => document.querySelector('dialog').contains(document.activeElement)")
    assert site.faults == []


def test_keys_pressed_twice_are_one_decision_and_the_next_alert_need_not_wait(site: Site) -> None:
    page = opened(site, 3)
    page.keyboard.press("j")
    what_happened(page, "walker 2: entered")
    page.locator(".alert-state", has_text="Seen").wait_for()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(urlsplit(request.url).path) if request.url.endswith("/resolve") else None)
    with slow_network(page):
        for key in "rrjr":
            page.keyboard.press(key)
        page.locator(".alert-state", has_text="Resolved").wait_for()
    newest = list(Alert.objects.order_by("-pk").values_list("pk", flat=True)[:2])
    assert sent == [f"/api/v1/alerts/{pk}/resolve" for pk in newest]


def test_a_decision_right_after_another_is_no_conflict_with_it(site: Site) -> None:
    page = opened(site, 1)
    page.keyboard.press("j")
    what_happened(page, "walker 0: entered")
    page.locator(".alert-state", has_text="Seen").wait_for()
    with slow_network(page):
        page.get_by_role("button", name="Acknowledge").press("Enter")
        page.locator(".alert-state", has_text="Acknowledged by ada").wait_for()
        page.locator(".drawer-foot").get_by_role("button", name="Resolve").press("Enter")
        page.locator(".alert-state", has_text="Resolved").wait_for()
    assert Alert.objects.get().state == "resolved" and site.faults == []


def test_a_dismissed_message_gives_the_focus_back(site: Site) -> None:
    page = opened(site, 1)
    page.get_by_label("Search").focus()
    come(site, 1, 10)
    page.locator(".toast").get_by_role("button", name="Dismiss").press("Enter")
    page.locator(".toast").wait_for(state="detached")
    assert page.evaluate(FOCUSED) == "Search"


def test_a_dialog_begins_at_its_first_field_or_at_what_does_no_harm(site: Site) -> None:
    page = opened(site, 1)
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    assert page.evaluate("document.activeElement.closest('.dialog-foot') !== null") and page.evaluate(FOCUSED) == "Close"
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    what_happened(page, "walker 0: entered")
    page.get_by_role("button", name="Mute…").press("Enter")
    dialog = page.get_by_role("dialog", name="Mute")
    dialog.wait_for()
    assert dialog.locator("select").first.evaluate("field => field === document.activeElement")
    dialog.get_by_label("Reason").last.fill("Works on the quay")
    page.keyboard.press("Escape")
    page.get_by_role("dialog", name="Close without saving?").wait_for()
    assert page.evaluate(FOCUSED) == "Cancel"
    page.keyboard.press("Enter")
    assert dialog.get_by_label("Reason").last.input_value() == "Works on the quay"
    assert site.faults == []


def press_twice(page: Page, button: Locator) -> None:
    button.press("Enter")
    page.keyboard.press("Enter")


def test_ages_of_all_alerts_are_updated_at_the_same_moment(site: Site) -> None:
    page = opened(site, 6)
    page.keyboard.press("j")
    what_happened(page, "walker 5: entered")
    page.wait_for_timeout(6_000)
    ages = page.locator("tr[data-alert] [data-age]").all_inner_texts()
    assert len(ages) == 6 and "just now" not in ages
    seconds = [int(text.split()[0]) for text in ages]
    assert seconds == sorted(seconds)
    shown = page.locator(".alert-detail .dl [data-age]").inner_text()
    assert abs(int(shown.split()[0]) - seconds[0]) <= 1


def test_on_a_phone_a_message_does_not_cover_the_head_of_an_open_alert(site: Site) -> None:
    page = opened(site, 2)
    page.keyboard.press("j")
    what_happened(page, "walker 1: entered")
    site.resize(390)
    come(site, 1, 10)
    page.locator(".toast").wait_for()
    page.wait_for_timeout(500)
    toast, close = page.locator(".toast").bounding_box(), page.locator(".alert-head button").bounding_box()
    assert toast is not None and close is not None and toast["y"] + toast["height"] <= close["y"]
    page.locator(".toast button").click()
    page.wait_for_function("(y) => document.querySelector('.alert-head button').getBoundingClientRect().y < y", arg=close["y"])
    assert site.faults == []


def test_a_begun_comment_stays_with_its_alert(site: Site) -> None:
    page = opened(site, 3)
    comment = page.get_by_label("Comment", exact=True)
    page.keyboard.press("j")
    what_happened(page, "walker 2: entered")
    comment.fill("Asked the harb")
    comment.blur()
    page.keyboard.press("j")
    what_happened(page, "walker 1: entered")
    assert comment.input_value() == ""
    asked = page_asks(page)
    page.get_by_role("link", name="Queries", exact=True).click()
    assert asked == ["beforeunload"]
    page.keyboard.press("k")
    what_happened(page, "walker 2: entered")
    assert comment.input_value() == "Asked the harb"
    page.get_by_role("button", name="Comment", exact=True).click()
    page.locator(".steps").get_by_text("Asked the harb").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Queries", exact=True).click()
    page.wait_for_url("**/queries/")
    assert len(asked) == 1


def test_the_way_back_leads_from_an_alert_to_the_list(site: Site) -> None:
    page = opened(site, 3)
    page.get_by_role("button", name="Unattended", exact=True).click()
    page.get_by_role("button", name="walker 1", exact=True).click()
    what_happened(page, "walker 1: entered")
    page.keyboard.press("j")
    what_happened(page, "walker 0: entered")
    page.go_back()
    page.get_by_role("heading", name="What happened").wait_for(state="detached")
    assert page.url.endswith("/alerts/?state=unattended")
    page.go_forward()
    what_happened(page, "walker 0: entered")
    page.keyboard.press("Escape")
    page.wait_for_url("**/alerts/?state=unattended")
    # From a link there is no list to go back to.
    page.goto(f"{site.address}/alerts/{Alert.objects.order_by('pk')[0].pk}")
    what_happened(page, "walker 0: entered")
    page.keyboard.press("Escape")
    page.wait_for_url("**/alerts/")


def test_the_desk_says_that_it_has_no_connection_and_misses_nothing(site: Site) -> None:
    page = opened(site, 3)
    # No alert is opened while the job does not run.
    down = page.locator(".state-down", has_text="Job is down")
    down.wait_for()
    assert "yard" in (down.get_attribute("title") or "")
    Job.objects.update(observed_state=ObservedState.RUNNING)
    page.locator(".state-live").wait_for()
    site.kill_web()
    page.locator(".state-reconnecting", has_text="Reconnecting").wait_for()
    # A failed request can be repeated.
    page.keyboard.press("j")
    again = page.get_by_role("button", name="Try again")
    again.wait_for()
    come(site, 2, 3)
    site.start_web()
    page.locator(".state-live").wait_for()
    page.get_by_role("button", name="walker 4", exact=True).wait_for()
    again.click()
    what_happened(page, "walker 2: entered")


@contextmanager
def on_a_phone(site: Site) -> Iterator[Page]:
    """The opened desk as a phone shows it."""
    assert site.context.browser is not None
    with closing(site.context.browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)) as context:
        context.add_cookies(site.context.cookies())  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(site.address + "/alerts/")
        page.locator("tr[data-alert]").first.wait_for()
        yield page


def test_a_finger_beside_the_box_ticks_it(site: Site) -> None:
    opened(site, 3)
    with on_a_phone(site) as page:
        label = page.locator("tr[data-alert] .tick label").first
        box = label.bounding_box()
        assert box is not None and min(box["width"], box["height"]) >= 40
        label.tap(position={"x": box["width"] - 3, "y": box["height"] - 3})
        page.get_by_text("1 chosen").wait_for()
        assert page.locator(".alert-detail .button-primary").count() == 0


def test_the_buttons_of_an_open_alert_are_in_sight_on_a_phone(site: Site) -> None:
    opened(site, 3)
    with on_a_phone(site) as page:
        page.locator("tr[data-alert]").first.tap()
        what_happened(page, "walker 2: entered")
        take = page.locator(".alert-detail .button-primary")
        box, rail = take.bounding_box(), page.locator(".rail").bounding_box()
        assert box is not None and rail is not None and box["y"] + box["height"] <= rail["y"]
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        take.tap()
        page.locator(".steps").get_by_text("acknowledged it").wait_for()


def test_the_filtered_list_is_downloaded_whole(site: Site) -> None:
    """More alerts than the page has loaded, in the order of the list."""
    page = opened(site, 70)
    page.get_by_label("Search", exact=True).fill("walker")
    page.get_by_label("Order").select_option("oldest")
    page.get_by_text("70 alerts").wait_for()
    shot(site, "desk-export")
    page.get_by_role("button", name="Export", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("menuitem", name="CSV").click()
    assert waiting.value.suggested_filename == "alerts.csv"
    rows = list(csv.DictReader(waiting.value.path().read_text().splitlines()))
    assert [int(row["id"]) for row in rows] == list(Alert.objects.order_by("pk").values_list("pk", flat=True))
    page.get_by_label("Search", exact=True).fill("nobody at all")
    page.get_by_text("Nothing here").wait_for()
    page.get_by_role("button", name="Export", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("menuitem", name="JSON lines").click()
    assert waiting.value.path().read_text() == ""


def test_the_desk_follows_the_other_feeds_when_one_is_removed(site: Site) -> None:
    other = a_head(a_feed("bay", public=True)).feed
    page = opened(site, 1)
    Job.objects.update(observed_state=ObservedState.RUNNING)
    page.locator(".state-live").wait_for()
    with page.expect_websocket():
        other.delete()
    page.locator(".state-live").wait_for()
    come(site, 1, 1)
    page.get_by_role("button", name="walker 1", exact=True).wait_for()


def test_what_was_written_can_be_sent_after_a_log_in_in_another_tab(site: Site) -> None:
    page = opened(site, 1)
    page.keyboard.press("j")
    what_happened(page, "walker 0: entered")
    page.get_by_label("Comment", exact=True).fill("seen from the pier")
    # As a log-in does, which makes a new token.
    site.context.clear_cookies(name=settings.CSRF_COOKIE_NAME)
    page.get_by_role("button", name="Comment", exact=True).click()
    page.locator(".steps").get_by_text("seen from the pier").wait_for()


def test_what_was_written_is_not_sent_as_another_user(site: Site) -> None:
    page = opened(site, 1)
    page.keyboard.press("j")
    what_happened(page, "walker 0: entered")
    page.get_by_label("Comment", exact=True).fill("seen from the pier")
    other = Client()
    other.force_login(User.objects.create_superuser("eve"))
    name = settings.SESSION_COOKIE_NAME
    site.context.add_cookies([{"name": name, "value": other.cookies[name].value, "url": site.address}])
    site.context.clear_cookies(name=settings.CSRF_COOKIE_NAME)
    page.get_by_role("button", name="Comment", exact=True).click()
    page.get_by_text("This page is out of date").wait_for()
    assert not AlertStep.objects.filter(text="seen from the pier").exists()


def test_pages_that_are_open_when_a_session_ends_say_so_and_lose_nothing(site: Site) -> None:
    page = opened(site, 2)
    page.get_by_role("button", name="Unattended", exact=True).click()
    page.get_by_role("button", name="walker 1", exact=True).click()
    what_happened(page, "walker 1: entered")
    desk = page.url
    feeds, wizard = page.context.new_page(), page.context.new_page()
    feeds.goto(site.address + "/feeds/")
    feeds.get_by_role("heading", name="yard").wait_for()
    wizard.goto(site.address + "/feeds/new")
    wizard.get_by_text("Drop a recording here").wait_for()
    Session.objects.all().delete()
    wizard.locator("#wizard-file").set_input_files({"name": "a.csv", "mimeType": "text/csv", "buffer": b"entity,t,x,y\na,1,2,3\n"})
    wizard.get_by_text("Log in again in another tab and continue here").wait_for()
    feeds.get_by_text("Not up to date since").wait_for()
    site.kill_web()
    site.start_web()
    page.wait_for_url("**/login/**")
    assert parse_qs(urlsplit(page.url).query)["next"] == [desk.removeprefix(site.address)]
