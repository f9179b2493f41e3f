"""Whoever should know is told: on the alerts page, by the browser, by a channel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.answering import Answering
from tests.webapp.alerts.test_webhooks import Receiver
from webapp.alerts.deliveries import channel_create
from webapp.alerts.models import Alert

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]

LISTENED = """
  window.told = [];
  const Real = window.Notification;
  window.Notification = class extends Real {
    constructor(title, options) { super(title, options); window.told.push({ title, body: options.body }); }
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
    # Nothing is held back while the pointer is away.
    page.mouse.move(3, 3)
    known = set(Alert.objects.values_list("pk", flat=True))
    page.wait_for_timeout(500)
    page.evaluate("window.isAway = true")
    site.world.append(300)
    answering.catch_up()
    fresh = list(Alert.objects.exclude(pk__in=known).filter(state="new", over_at=None).order_by("pk"))
    assert fresh, "the world is too quiet"
    # The newest stand first; further down there are no elements for rows out of sight.
    for alert in fresh[-3:]:
        row = page.locator(f"tr[data-alert='{alert.pk}']")
        row.get_by_text("crossings" if alert.kind == "in" else "stays", exact=True).wait_for()
    told = page.evaluate("window.told")
    name = {"in": ("crossings", "entered"), "stayed_in": ("stays", "stayed in")}
    for alert in fresh:
        query, kind = name[alert.kind]
        assert {"title": f"{alert.severity.capitalize()}: {query}", "body": f"{alert.entities[0]} · {kind}"} in told
    assert site.faults == []


@pytest.fixture
def receiver(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    monkeypatch.setenv("VEDETTE_WEBHOOK_NETWORKS", "127.0.0.0/8")
    found = Receiver()
    yield found
    found.server.shutdown()
    found.server.server_close()


def test_the_test_button_of_a_channel_sends_a_message_and_says_what_came_back(receiver: Receiver, site: Site) -> None:
    channel_create(owner=site.world.feed.owner, name="desk", url=receiver.url)
    receiver.statuses = [204, 500]
    site.log_in()
    page = site.page
    page.goto(site.address + "/account/")
    press = page.get_by_role("button", name="Test", exact=True)
    press.click()
    page.get_by_text("“desk” answered 204.").wait_for()
    (headers, body), *more = receiver.got
    assert more == [] and json.loads(body)["type"] and headers["webhook-signature"].startswith("v1,")
    press.click()
    page.get_by_text("“desk” failed").wait_for()
    assert len(receiver.got) == 2
