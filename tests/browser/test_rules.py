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
    # Until the answer comes, no result of the earlier form is shown.
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


def test_rules_and_shifts_that_reach_nobody_say_so_in_their_lists(site: Site) -> None:
    from tests.browser.test_limits import shot
    from tests.webapp.alerts.test_lifecycle import crossing, record
    from tests.webapp.alerts.test_reach import on_call, quiet
    from webapp.accounts.models import Membership, Role, Team, User
    from webapp.alerts.rules import rule_save

    world, ada = site.world, site.world.feed.owner
    anna = User.objects.create(username="anna")
    Membership.objects.create(user=anna, team=Team.objects.get(name="watch"), role=Role.VIEWER)
    rule_save(user=ada, name="Night", people=[anna])
    rule_save(user=ada, name="Duty", shifts=[on_call(ada, anna)])
    record(world.crossings, crossing(world.crossings, "in", "w1", 10))
    site.log_in()
    page = site.page
    page.goto(site.address + "/account/")
    rules, shifts = page.locator("#rules"), page.locator("#shifts")
    rules.get_by_text("Reaches nobody: anna has no channel that works. Add or repair a channel").wait_for()
    rules.get_by_text("Reaches nobody: in the shift Night, anna has no channel that works.").wait_for()
    shifts.get_by_text("Reaches nobody now: anna, on call without a channel that works.").wait_for()
    rules.scroll_into_view_if_needed()
    shot(site, "reaches-nobody")
    rules.get_by_role("button", name="Edit").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Alerts of").select_option("info")
    dialog.get_by_role("button", name="Try on the last day").click()
    dialog.get_by_text("One alert in the last day; the rule matches one of them.").wait_for()
    dialog.get_by_text("Reaches nobody: anna has no channel that works.").wait_for()
    shot(site, "try-reaches-nobody")
    quiet(anna)
    dialog.get_by_role("button", name="Try on the last day").click()
    dialog.get_by_text("but it reaches nobody: its recipients may not see the query. Share it with their team.").wait_for()
    assert dialog.get_by_text("no channel that works").count() == 0
    dialog.get_by_role("button", name="Cancel").click()
    page.reload()
    shifts.get_by_text("On call now: anna").wait_for()
    assert page.get_by_text("Reaches nobody").count() == 0
    assert site.faults == []


def test_a_shift_is_entered_by_hand(site: Site) -> None:
    """Times are of the account's zone; faults are next to their fields; Escape loses nothing."""
    from tests.browser.accessibility import violations
    from tests.browser.test_limits import shot
    from webapp.alerts.models import Turn

    reader = site.world.feed.owner
    reader.time_zone = "Asia/Tokyo"
    reader.save()
    site.log_in()
    page = site.page
    page.goto(site.address + "/account/")
    shifts = page.locator("#shifts")
    shifts.get_by_role("button", name="New shift").click()
    page.get_by_role("dialog").get_by_label("Name", exact=True).fill("Duty")
    page.get_by_role("dialog").get_by_role("button", name="Make shift").click()
    turns = page.get_by_role("dialog", name="Turns of “Duty”")
    turns.get_by_text("Nobody is on call, now or later.").wait_for()
    turns.get_by_role("button", name="New turn").click()
    form = page.get_by_role("dialog", name="New turn")
    form.get_by_text("your account's zone: Asia/Tokyo").wait_for()
    form.get_by_role("button", name="Save turn").click()
    form.locator("[data-pointer='/person'] .fault").wait_for()
    form.locator("[data-pointer='/ends_at'] .fault").wait_for()
    shot(site, "turn-faults")
    form.get_by_label("Who").select_option("ada")
    form.get_by_label("From").fill("2027-01-05T22:00")
    form.get_by_label("Until").fill("2027-01-05T06:00")
    form.get_by_role("button", name="Save turn").click()
    form.locator("[data-pointer='/ends_at'] .fault").get_by_text("It has to end after it begins.").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog", name="Close without saving?").get_by_role("button", name="Cancel").click()
    form.get_by_label("Until").fill("2027-01-06T06:00")
    assert violations(page) == []
    form.get_by_role("button", name="Save turn").click()
    turns.get_by_text("5 Jan 2027, 22:00:00 – 6 Jan 2027, 06:00:00").wait_for()
    (stored,) = Turn.objects.all()
    assert (stored.begins_at.isoformat(), stored.ends_at.isoformat()) == ("2027-01-05T13:00:00+00:00", "2027-01-05T21:00:00+00:00")
    turns.locator("button:focus", has_text="New turn").wait_for()
    shot(site, "turns")
    turns.get_by_role("button", name="Edit").click()
    form = page.get_by_role("dialog", name="Change a turn")
    assert form.get_by_label("From").input_value() == "2027-01-05T22:00"
    form.locator("#turn-person:has(option:checked[value=ada])").wait_for()
    form.get_by_label("Until").fill("2027-01-06T07:30")
    form.get_by_role("button", name="Save turn").click()
    turns.get_by_text("6 Jan 2027, 07:30:00").wait_for()
    turns.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog", name="Remove this turn?").get_by_role("button", name="Remove turn").click()
    turns.get_by_text("Nobody is on call, now or later.").wait_for()
    turns.get_by_role("button", name="Close").last.click()
    shifts.get_by_text("Nobody is on call: enter turns, or import a calendar.").wait_for()
    shot(site, "shift-empty")
    assert site.faults == [one for one in site.faults if "status of 400" in one]
