"""A connector that keeps failing is shown on every page; its faults are shown at their fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from tests.browser.test_limits import shot
from tests.webapp.answers import a_head
from webapp.connectors.outages import connector_keeps_failing, connector_recovers
from webapp.connectors.services import connector_create
from webapp.feeds.models import Connector
from webapp.jobs.models import FeedHead, Job, ObservedState

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]


def bar(page: Page, text: str) -> None:
    page.locator(".state").get_by_text(text, exact=True).wait_for()


def test_a_connector_that_keeps_failing_is_said_on_every_page(site: Site) -> None:
    feed = site.world.feed
    a_head(feed)
    Job.objects.update(observed_state=ObservedState.RUNNING)
    FeedHead.objects.update(updated_at=timezone.now())
    mast = connector_create(feed=feed, name="mast", kind="mqtt", settings={"host": "192.0.2.1", "port": 1883, "topic": "t"})
    connector_keeps_failing(mast, since=timezone.now(), why="192.0.2.1:1883 cannot be reached: timed out")
    site.log_in()
    page = site.page
    page.goto(site.address + "/")
    bar(page, "Connector fails")
    shot(site, "live-connector-fails")
    page.goto(site.address + "/alerts/")
    bar(page, "Connector fails")
    assert "mast (yard)" in str(page.locator(".state").get_attribute("title"))
    shot(site, "desk-connector-fails")
    page.goto(site.address + "/feeds/")
    card = page.get_by_role("article", name="Feed yard")
    card.get_by_text("The connector mast does not work: open Connectors to see why.").wait_for()
    card.get_by_text("The connector mast of yard keeps failing; it tries again about once a minute: 192.0.2.1:1883 cannot").wait_for()
    shot(site, "feeds-connector-fails")
    connector_recovers(Connector.objects.get())
    card.get_by_text("Connector runs again").wait_for()
    card.get_by_text("does not work: open Connectors").wait_for(state="detached")
    page.goto(site.address + "/alerts/")
    bar(page, "Live")
    assert site.faults == []


def test_faults_of_a_connector_are_shown_at_their_fields(site: Site) -> None:
    site.log_in()
    page = site.page
    page.goto(site.address + "/feeds/")
    page.get_by_role("button", name="Connectors of the feed yard").click()
    page.get_by_role("button", name="Add connector").click()
    form = page.get_by_role("dialog", name="Add connector")
    form.get_by_label("Name", exact=True).fill("Mast")
    form.get_by_label("Protocol").select_option("mqtt")
    form.get_by_label("Host").fill("127.0.0.1")
    form.get_by_label("Port").fill("1883")
    form.get_by_label("Topics").fill("fleet/{entity}")
    form.get_by_role("button", name="Test").click()
    form.locator("[data-pointer='/settings/host'] .fault").get_by_text("The host's address is not a public one.").wait_for()
    shot(site, "connector-host")
    form.get_by_label("Protocol").select_option("ais-udp")
    form.get_by_label("Port").fill("80")
    form.get_by_role("button", name="Save").click()
    form.locator("[data-pointer='/settings/port'] .fault").get_by_text("10110-10119").wait_for()
    shot(site, "connector-port")
    assert not Connector.objects.exists()
    assert [fault for fault in site.faults if "400 (Bad Request)" not in fault] == []
