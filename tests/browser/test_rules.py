"""A routing rule is created on the account page, tried on the last day's alerts, and
sends the alerts that match."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Error

from tests.browser.forms import page_asks

if TYPE_CHECKING:
    from playwright.sync_api import Route

    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]


def test_a_rule_is_made_tried_and_switched_off(site: Site) -> None:
    from django.utils import timezone

    from tests.browser.test_limits import shot
    from tests.webapp.alerts.test_lifecycle import crossing, record
    from tests.webapp.alerts.test_shifts import calendar
    from webapp.alerts.deliveries import channel_create, deliveries_prepare, notifications_plan
    from webapp.alerts.handling import Decision, alerts_decide
    from webapp.alerts.models import Alert, Notification, RoutingRule, Step

    world = site.world
    channel_create(owner=world.feed.owner, name="Night desk", url="https://hooks.example.org/x", all_queries=False)
    record(world.crossings, *(crossing(world.crossings, "in", entity, 10) for entity in ("w1", "w2")))
    site.log_in()
    page = site.page
    page.goto(site.address + "/account/")
    rules = page.locator("#rules")
    rules.get_by_role("button", name="The last day").click()
    page.get_by_text("2 alerts in the last day; 2 reach nobody.").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Close").last.click()

    page.locator("#shifts").get_by_role("button", name="New shift").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("Duty")
    span = (timezone.now() - timedelta(hours=1), timezone.now() + timedelta(days=1), "ada")
    dialog.get_by_label("Calendar").set_input_files({"name": "duty.ics", "mimeType": "text/calendar", "buffer": calendar(span).encode()})
    dialog.get_by_role("button", name="Make shift").click()
    page.locator("#shifts").get_by_text("On call now: ada").wait_for()
    shot(site, "shifts")
    page.locator("#shifts").get_by_role("button", name="Edit").click()
    dialog.get_by_label("Name", exact=True).fill("Watch")
    # Leaving the page and Escape, pressed by mistake, drop nothing.
    asked = page_asks(page)
    with suppress(Error):  # it was not left
        page.go_back(timeout=3_000)
    assert asked == ["beforeunload"]
    page.keyboard.press("Escape")
    page.get_by_role("dialog", name="Close without saving?").get_by_role("button", name="Cancel").click()
    dialog.get_by_role("button", name="Save shift").click()
    page.get_by_text("“Watch” is changed.").wait_for()

    rules.get_by_role("button", name="New rule").click()
    dialog.get_by_role("button", name="Make rule").click()
    # The form is longer than the window: the first fault comes into view.
    dialog.locator("[data-pointer='/name'] .fault").wait_for()
    assert dialog.get_by_label("Name", exact=True).evaluate("field => field === document.activeElement")
    dialog.get_by_label("Name", exact=True).fill("Crossings")
    dialog.get_by_label("Alerts of").select_option("low")
    dialog.get_by_label("Query", exact=True).select_option(str(world.crossings.pk))
    dialog.get_by_label("Only if nobody acknowledged within minutes").fill("5")
    dialog.get_by_role("button", name="Try on the last day").click()
    dialog.get_by_text("2 alerts in the last day; each reaches someone.").wait_for()
    dialog.get_by_text("by the rule “Crossings”, if nobody acknowledged within 5 min").wait_for()
    shot(site, "new-rule")
    dialog.get_by_label("Alerts of").select_option("critical")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/routing-rules/dry-run", hold)
    dialog.get_by_role("button", name="Try on the last day").click()
    # Until the answer comes, nothing is said about the form as it was.
    dialog.get_by_text("by the rule “Crossings”").wait_for(state="detached")
    held[0].continue_()
    page.unroute("**/routing-rules/dry-run")
    dialog.get_by_text("2 alerts in the last day; the rule matches none of them.").wait_for()
    dialog.get_by_label("Alerts of").select_option("low")
    dialog.get_by_label("Send to").select_option(label="On call in “Watch”")
    dialog.get_by_role("button", name="Try on the last day").click()
    dialog.locator(".dry-run").get_by_text("Night desk").wait_for()
    dialog.get_by_label("Send to").select_option(label="The channel “Night desk”")
    dialog.get_by_role("button", name="Make rule").click()
    rules.get_by_text("Low and above · 1 query · after 5 min without acknowledgement").wait_for()
    rules.get_by_text("To Night desk").wait_for()
    shot(site, "rules")
    notifications_plan()
    assert [(one.rule and one.rule.name, one.after_minutes) for one in Notification.objects.all()] == [("Crossings", 5)] * 2
    # One is acknowledged in time, so only the other is escalated.
    acknowledged, waiting = Alert.objects.order_by("pk")
    alerts_decide(alerts=[acknowledged], decision=Decision(Step.ACKNOWLEDGED, world.feed.owner))
    deliveries_prepare(timezone.now() + timedelta(minutes=6))
    page.locator("#channels").get_by_role("button", name="What was sent").click()
    dialog.locator("tbody tr").get_by_text(f"Alert {waiting.pk}", exact=True).wait_for()
    assert dialog.locator("tbody tr").count() == 1
    dialog.get_by_role("button", name="Close").last.click()

    rules.get_by_role("button", name="Edit").click()
    dialog.get_by_label("Messages", exact=True).select_option("daily")
    dialog.get_by_label("At", exact=True).fill("07:30")
    RoutingRule.objects.update(after_minutes=6)  # as from another window
    dialog.get_by_role("button", name="Save rule").click()
    rules.get_by_text("a digest at 07:30 · critical ones immediately").wait_for()
    rules.get_by_text("Low and above · 1 query · after 6 min without acknowledgement").wait_for()
    rules.get_by_text("To Night desk").wait_for()

    rules.locator(".rule .switch").click()
    world.wait(lambda: not RoutingRule.objects.get().enabled, 30, "the rule is switched off")
    rules.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove rule").click()
    rules.get_by_text("No rule yet").wait_for()
    # The only fault is the missing name.
    assert [fault for fault in site.faults if "400 (Bad Request)" not in fault] == []
