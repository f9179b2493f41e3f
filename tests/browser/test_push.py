"""A browser is added as a channel, shows push messages while no page is open, and is removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.test_limits import shot
from tests.webapp.alerts.push_service import PushService
from webapp.alerts.models import Channel
from webapp.alerts.transports import push

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]

SUBSCRIBED = """(given) => {
  // This Chromium has no push service of its maker behind it: the one of this test answers in its place.
  PushManager.prototype.subscribe = async function (options) {
    const worker = (await navigator.serviceWorker.getRegistration('/static/build/push_worker.js')).active;
    if (worker === null || !options.userVisibleOnly) throw new Error('no active worker');
    window.askedWith = [...new Uint8Array(options.applicationServerKey)];
    return { endpoint: given.endpoint, toJSON: () => ({ endpoint: given.endpoint, keys: given.keys }) };
  };
}"""
SHOWN = """async () => (await (await navigator.serviceWorker.getRegistration('/static/build/push_worker.js')).getNotifications())
  .map((one) => ({ title: one.title, body: one.body, tag: one.tag }))"""
PRESSED = """async () => {
  const opened = [];
  self.clients.openWindow = async (address) => { opened.push(address); };
  for (const notification of await self.registration.getNotifications()) {
    const event = new NotificationEvent('notificationclick', { notification });
    self.dispatchEvent(event);
  }
  for (let n = 0; n < 200 && opened.length === 0; n += 1) await new Promise((resolve) => setTimeout(resolve, 50));
  return opened;
}"""

CHANGED = """async (given) => {
  const subscription = (one) => ({ endpoint: one.endpoint, options: { applicationServerKey: new ArrayBuffer(65) }, toJSON: () => one });
  PushManager.prototype.subscribe = async () => subscription(given.fresh);
  self.dispatchEvent(Object.assign(new ExtendableEvent('pushsubscriptionchange'), { oldSubscription: subscription(given.old) }));
}"""


@pytest.fixture
def service(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[PushService]:
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    monkeypatch.setenv("VEDETTE_WEBHOOK_NETWORKS", "127.0.0.0/8")
    found = PushService(push.public_key() or "")
    yield found
    found.close()


def test_a_browser_is_notified_while_no_page_is_open(service: PushService, site: Site) -> None:
    site.log_in()
    page, browser = site.page, service.subscribe()
    page.goto(site.address + "/account/")
    card = page.locator("#channels .channel")

    # Notifications are not permitted yet: the page shows what to do.
    page.get_by_role("button", name="Notify this browser").click()
    page.get_by_text("The browser does not allow notifications for this page").wait_for()
    site.context.grant_permissions(["notifications"], origin=site.address)
    page.evaluate(SUBSCRIBED, {"endpoint": service.address_of(browser), "keys": browser.keys})
    page.get_by_role("button", name="Notify this browser").click()
    card.get_by_text("This browser", exact=True).wait_for()
    channel = Channel.objects.get()
    assert (channel.kind, channel.owner.username, channel.browser_keys) == ("push", "ada", browser.key_text)
    assert len(page.evaluate("window.askedWith")) == 65

    shot(site, "channels")
    card.get_by_role("button", name="Test", exact=True).click()
    page.get_by_text("answered 201.").wait_for()
    ((_, message),) = browser.got
    assert message["link"] == "/account/"

    # The worker shows messages without any page of the site.
    cdp = site.context.new_cdp_session(page)
    registrations = list[dict[str, Any]]()
    cdp.on("ServiceWorker.workerRegistrationUpdated", lambda event: registrations.extend(event["registrations"]))
    cdp.send("ServiceWorker.enable")
    site.world.wait(lambda: page.wait_for_timeout(50) or registrations != [], 60, "the worker is registered")
    (scope,) = {one["scopeURL"] for one in registrations}
    assert scope == f"{site.address}/static/build/", "it controls no page"
    message |= {"link": "/alerts/7", "tag": "alert-7"}
    pushed = {"origin": site.address, "registrationId": registrations[0]["registrationId"], "data": json.dumps(message)}
    page.goto("about:blank")
    cdp.send("ServiceWorker.deliverPushMessage", pushed)
    page.goto(site.address + "/account/")
    page.wait_for_function(f"async () => (await ({SHOWN})()).length === 1")
    assert page.evaluate(SHOWN) == [{"title": message["title"], "body": message["body"], "tag": "alert-7"}]
    assert site.context.service_workers[0].evaluate(PRESSED) == [f"{site.address}/alerts/7"]

    # The push service assigns another address to the browser: its worker notifies the server,
    # without a page and without a log-in.
    fresh = service.subscribe()
    subscriptions = {name: {"endpoint": service.address_of(one), "keys": one.keys} for name, one in (("old", browser), ("fresh", fresh))}
    site.context.service_workers[0].evaluate(CHANGED, subscriptions)
    site.world.wait(lambda: Channel.objects.get().browser_keys == fresh.key_text, 60, "the server has the new subscription")

    # Another browser of the same user is a separate channel; it is removed in the list.
    card.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove channel").click()
    card.wait_for(state="detached")
    assert not Channel.objects.exists()
    assert site.faults == []
