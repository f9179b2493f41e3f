"""The page of alerts with thousands of them, while more come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import transaction
from django.utils import timezone

from tests.browser.accessibility import violations
from tests.browser.test_limits import shot
from tests.webapp.answers import a_head
from webapp.accounts.models import Membership, Role, Team, User
from webapp.alerts.handling import Decision, alerts_decide
from webapp.alerts.models import Alert, Mute, Step
from webapp.alerts.rows import alert_rows
from webapp.detections.services import outbox_append

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]

OPEN = 3_000


def make(site: Site, count: int, first: int = 0) -> list[Alert]:
    now = timezone.now()
    return Alert.objects.bulk_create(
        Alert(
            query=site.world.crossings,
            feed=site.world.feed,
            detection_key=(first + n).to_bytes(16, "big"),
            kind="in",
            entities=[f"walker {first + n}"],
            start=n,
            severity="high",
            opened_at=now - timedelta(seconds=count - n),
        )
        for n in range(count)
    )


def come(site: Site, count: int, first: int) -> None:
    """New alerts, sent to open pages."""
    with transaction.atomic():
        outbox_append(feed_id=site.world.feed.pk, alerts=alert_rows(make(site, count, first)))


def test_the_desk_with_thousands_of_open_alerts(site: Site) -> None:
    a_head(site.world.feed)
    make(site, OPEN)
    User.objects.filter(username="ada").update(time_zone="Asia/Tokyo")
    Membership.objects.create(user=User.objects.get(username="ada"), team=Team.objects.create(name="Watch"), role=Role.OPERATOR)
    site.log_in()
    page = site.page
    first_frames: list[str] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda payload: first_frames.append(str(payload))))
    page.goto(site.address + "/alerts/")
    rows = page.locator("tr[data-alert]")
    page.get_by_text("3,000 alerts").wait_for()

    def goes_on() -> bool:
        # Playwright hands frames over while it is asked for something.
        page.wait_for_timeout(100)
        return any('"changes"' in frame for frame in first_frames)

    site.world.wait(goes_on, 20, "the socket continues from where the page was made")
    assert not any('"snapshot"' in frame for frame in first_frames), "the rows come once, by the API"
    assert rows.count() < 60, "elements for what can be seen, not for all"
    for _ in range(3):
        page.locator(".desk-scroll").evaluate("(element) => element.scrollTo(0, element.scrollHeight)")
        page.wait_for_function("(most) => document.querySelector('.alerts-table').ariaRowCount > most", arg=200)
    assert rows.count() < 60
    page.locator(".desk-scroll").evaluate("(element) => element.scrollTo(0, 0)")

    # No row moves under the pointer.
    name_of = page.get_by_role("button", name=f"walker {OPEN - 1}", exact=True)
    name_of.hover()
    come(site, 40, OPEN)
    held = page.get_by_role("button", name="40 new, show")
    held.wait_for()
    assert rows.first.get_by_role("button", name=f"walker {OPEN - 1}", exact=True).count() == 1
    held.click()
    page.get_by_role("button", name=f"walker {OPEN + 39}", exact=True).wait_for()

    shot(site, "desk")
    # By keys: open the first, comment, acknowledge it. Opening it made it seen.
    page.mouse.move(3, 3)
    page.keyboard.press("j")
    page.get_by_role("heading", name="What happened").wait_for()
    newest = Alert.objects.order_by("-pk")[0]
    site.world.wait(lambda: Alert.objects.get(pk=newest.pk).state == "seen", 20, "the alert is seen")
    page.keyboard.press("c")
    page.get_by_label("Comment", exact=True).fill("On it")
    page.get_by_label("Comment", exact=True).blur()
    page.keyboard.press("a")
    page.locator(".steps").get_by_text("acknowledged it").wait_for()
    assert [(step.action, step.text) for step in newest.steps.all()] == [("seen", ""), ("acknowledged", "On it")]

    # Someone else decided before: the page shows who, and what they did.
    page.keyboard.press("j")
    page.get_by_role("heading", name=f"walker {OPEN + 38}: entered").wait_for()
    other = User.objects.create_superuser("grace")
    second = Alert.objects.order_by("-pk")[1]
    site.world.wait(lambda: Alert.objects.get(pk=second.pk).state == "seen", 20, "the alert is seen")
    alerts_decide(alerts=[second], decision=Decision(Step.ACKNOWLEDGED, other))
    # The request is sent as if the update had not arrived yet.
    page.route("**/api/v1/alerts/*/resolve", lambda route: route.continue_(post_data='{"revision": 0}'))
    page.keyboard.press("r")
    page.get_by_text("grace acknowledged this alert at").wait_for()
    page.locator(".steps").get_by_text("acknowledged it").wait_for()
    page.keyboard.press("Escape")

    # Muted on the page, which shows by whom and why; the list of mutes lifts it.
    page.keyboard.press("j")
    page.get_by_role("heading", name=f"walker {OPEN + 39}: entered").wait_for()
    # The reader is alone in the team.
    page.get_by_role("button", name="Assign to…").click()
    page.get_by_role("menuitem", name="Invite colleagues…").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Mute…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What", exact=True).select_option(label=f"walker {OPEN + 39}, in all queries that you may change")
    dialog.get_by_label("How long").select_option("until")
    dialog.get_by_text("In GMT+9.").wait_for()
    dialog.get_by_role("button", name="Mute", exact=True).click()
    dialog.get_by_text("Until when? Give a day and an hour.").wait_for()
    dialog.get_by_text("Give a reason").wait_for()
    dialog.get_by_label("Until", exact=True).fill("2099-01-01T09:00")
    dialog.get_by_label("Reason").fill("Our own")
    dialog.get_by_role("button", name="Mute", exact=True).click()
    page.get_by_text("Muted by ada until").wait_for()
    shot(site, "desk-alert")
    made = [(mute.entities, mute.reason, mute.window_until) for mute in Mute.objects.all()]
    assert made == [([f"walker {OPEN + 39}"], "Our own", datetime(2099, 1, 1, tzinfo=UTC))], "the hour is that of the reader's zone"
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Mutes").click()
    dialog.get_by_text("1 muted").wait_for()
    shot(site, "mutes")
    dialog.get_by_role("button", name="Lift").click()
    dialog.get_by_text("ended").wait_for()
    # Maintenance is planned without an alert, and repeats.
    dialog.get_by_role("button", name="New mute").click()
    dialog.get_by_label("What", exact=True).select_option(label=f"The query “crossings” ({site.world.feed.name})")
    dialog.get_by_label("From", exact=True).fill("2099-01-02T09:00")
    dialog.get_by_label("Until", exact=True).fill("2099-01-02T10:00")
    dialog.get_by_label("How often").select_option("FREQ=WEEKLY")
    dialog.get_by_label("Reason").fill("Weekly works")
    dialog.get_by_role("button", name="Mute", exact=True).click()
    dialog.wait_for(state="detached")
    planned = Mute.objects.get(reason="Weekly works")
    assert (planned.query, planned.rule, planned.window_from, planned.zone) == (
        site.world.crossings, "FREQ=WEEKLY", datetime(2099, 1, 2, tzinfo=UTC), "Asia/Tokyo"
    )  # fmt: skip

    # A flood as one row, which opens again.
    page.get_by_label("Group", exact=True).select_option("query")
    group = page.locator("tr[data-group]")
    group.get_by_text("3,040").first.wait_for()
    shot(site, "desk-groups")
    assert group.count() == 1 and group.locator("svg").count() >= 1
    assert violations(page) == []
    group.get_by_role("button", name="crossings", exact=True).click()
    rows.first.wait_for()
    assert f"query={site.world.crossings.pk}" in page.url
    page.goto(site.address + "/alerts/")
    rows.first.wait_for()

    # All that match, also those that are not loaded.
    page.get_by_label("Search").fill("walker 29")
    page.get_by_text("160 alerts").wait_for()
    assert "search=walker+29" in page.url
    page.get_by_label("Search").fill("")
    page.get_by_text("3,040 alerts").wait_for()

    # A span of the reader's own, in their zone; and what a colleague has.
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Opened", exact=True).select_option("between")
    page.get_by_label("Opened before").fill("2020-01-01T09:00")
    page.get_by_text("0 alerts", exact=True).wait_for()
    assert "until=2020-01-01T00%3A00%3A00.000Z" in page.url
    page.get_by_label("Opened", exact=True).select_option("")
    page.get_by_text("3,040 alerts").wait_for()
    page.get_by_label("Assigned to", exact=True).select_option("ada")
    page.get_by_text("0 alerts", exact=True).wait_for()
    page.get_by_label("Assigned to", exact=True).select_option("")
    page.get_by_text("3,040 alerts").wait_for()
    page.get_by_label("Choose all").check()
    page.get_by_text("All 3,040 that match").wait_for()
    page.get_by_role("button", name="Resolve", exact=True).click()
    page.get_by_text("3,040 alerts resolved.").wait_for()
    page.get_by_text("All quiet").wait_for()
    assert not Alert.objects.exclude(state="resolved").exists()
    assert [fault for fault in site.faults if "409" not in fault] == []
