"""Users are notified of alerts: on the alerts page, by the browser, by a channel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from tests.browser.answering import Answering
from tests.browser.test_limits import shot
from tests.webapp.alerts.receiver import Receiver
from tests.webapp.alerts.test_lifecycle import crossing, record
from webapp.alerts.deliveries import channel_create, channel_send, deliveries_prepare, notifications_plan
from webapp.alerts.models import Alert, Channel, Delivery
from webapp.alerts.mutes import mute_create

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]

LISTENED = """
  window.notified = [];
  const Real = window.Notification;
  window.Notification = class extends Real {
    constructor(title, options) { super(title, options); window.notified.push({ title, body: options.body }); }
  };
  Object.defineProperty(document, "hidden", { get: () => window.isAway === true });
"""


def test_a_new_alert_comes_to_the_open_page_with_its_querys_name_and_as_a_notification(site: Site) -> None:
    site.context.grant_permissions(["notifications"], origin=site.address)
    site.context.add_init_script(LISTENED)
    site.world.append(400)
    answering = Answering(site.world)
    assert answering.catch_up() > 20
    site.log_in()
    page = site.page
    page.goto(site.address + "/account/")
    page.locator(".setting", has_text="Browser notifications").locator(".switch").click()
    page.wait_for_function("localStorage.getItem('vedette.notify') === 'yes'")
    page.goto(site.address + "/alerts/?state=new")
    page.locator("tr[data-alert]").first.wait_for()
    # New alerts are shown at once while the pointer is not over the list.
    page.mouse.move(3, 3)
    known = set(Alert.objects.values_list("pk", flat=True))
    page.wait_for_timeout(500)
    page.evaluate("window.isAway = true")
    site.world.append(300)
    answering.catch_up()
    fresh = list(Alert.objects.exclude(pk__in=known).filter(state="new", over_at=None).order_by("pk"))
    assert fresh, "the world is too quiet"
    # The newest come first; rows out of sight have no elements.
    for alert in fresh[-3:]:
        row = page.locator(f"tr[data-alert='{alert.pk}']")
        row.get_by_text("crossings" if alert.kind == "in" else "stays", exact=True).wait_for()
    notified = page.evaluate("window.notified")
    name = {"in": ("crossings", "entered"), "stayed_in": ("stays", "stayed in")}
    for alert in fresh:
        query, kind = name[alert.kind]
        assert {"title": f"{alert.severity.capitalize()}: {query}", "body": f"{alert.entities[0]} · {kind}"} in notified
    assert site.faults == []


def test_enter_makes_a_channel_whose_quiet_hours_are_in_the_zone_just_chosen(site: Site) -> None:
    site.log_in()
    page = site.page
    page.goto(site.address + "/account/")
    page.get_by_label("Time zone").select_option("Europe/Berlin")
    page.get_by_text("Times are now shown in that zone.").wait_for()
    page.get_by_role("button", name="New channel").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Address").fill("https://hooks.example.org/x")
    dialog.get_by_text("In Europe/Berlin.").wait_for()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.type("Desk")
    page.keyboard.press("Enter")
    dialog.get_by_label("The channel's secret").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("group", name="Desk").get_by_role("button", name="Test").wait_for()
    assert Channel.objects.get().zone == "Europe/Berlin"


@pytest.fixture
def receiver(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    monkeypatch.setenv("VEDETTE_WEBHOOK_NETWORKS", "127.0.0.0/8")
    found = Receiver()
    yield found
    found.server.shutdown()
    found.server.server_close()


def test_a_channel_is_edited_tested_inspected_and_groups_a_flood(receiver: Receiver, site: Site) -> None:
    """One message at once and a digest of the rest; muted alerts are in neither."""
    world, page = site.world, site.page
    channel = channel_create(owner=world.feed.owner, name="desk", url=receiver.url)
    site.log_in()
    page.goto(site.address + "/account/")
    card = page.locator("#channels .channel")

    card.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Quiet from").fill("22:00")
    dialog.get_by_role("button", name="Save channel").click()
    dialog.locator("[data-pointer='/quiet_until'] .fault").wait_for()
    dialog.get_by_label("Quiet from").fill("")
    dialog.get_by_label("Name").fill("night desk")
    dialog.get_by_label("Related alerts").select_option("query")
    dialog.get_by_label("Within minutes").fill("10")
    shot(site, "channel-form")
    dialog.get_by_role("button", name="Save channel").click()
    card.get_by_text("one message by query in 10 min").wait_for()

    receiver.statuses = [204, 500, 500]
    card.get_by_role("button", name="Test", exact=True).click()
    page.get_by_text("“night desk” answered 204.").wait_for()
    (headers, body), *more = receiver.got
    assert more == [] and json.loads(body)["type"] and headers["webhook-signature"].startswith("v1,")
    card.get_by_role("button", name="Test", exact=True).click()
    page.get_by_text("“night desk” failed").wait_for()

    now = timezone.now()
    mute_create(owner=channel.owner, feed=world.feed, query=None, entities=["w9"], reason="Our own")
    record(world.crossings, *(crossing(world.crossings, "in", entity, 10) for entity in ("w1", "w2", "w3", "w9")))
    Alert.objects.update(opened_at=now, severity="high")
    Channel.objects.update(min_severity="high")
    notifications_plan(now)
    deliveries_prepare(now)
    channel_send(channel_id=channel.pk)
    deliveries_prepare(now + timedelta(minutes=10))
    Delivery.objects.filter(attempts=0).update(next_at=now)  # as if these minutes had passed
    channel_send(channel_id=channel.pk)
    card.get_by_role("button", name="What was sent").click()
    rows = dialog.locator("tbody tr")
    rows.filter(has_text="2 alerts").get_by_text("sent", exact=True).wait_for()
    first = rows.filter(has_text="waiting")
    first.get_by_text("HTTP 500").wait_for()
    shot(site, "delivery-log")
    first.get_by_role("button", name="Try again").click()
    page.get_by_text("It is tried again now.").wait_for()
    channel_send(channel_id=channel.pk)
    dialog.get_by_role("button", name="Look again").click()
    first.wait_for(state="detached")
    bodies = [json.loads(body) for _, body in receiver.got[2:]]
    delivered = {(one["type"], *(alert["entities"][0] for alert in one["data"]["alerts"])) for one in bodies}
    assert delivered == {("alerts.opened", "w1"), ("alerts.digest", "w2", "w3")}
    dialog.get_by_role("button", name="Close").last.click()

    card.get_by_role("button", name="New secret").click()
    dialog.get_by_role("button", name="Make secret").click()
    fresh = dialog.get_by_label("The channel's secret").input_value()
    assert fresh.startswith("whsec_") and Channel.objects.get().secret == fresh
    # The only fault is the refused field.
    assert [fault for fault in site.faults if "400 (Bad Request)" not in fault] == []
