"""The page of alerts with thousands of them, while more come."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import transaction
from django.utils import timezone

from tests.webapp.answers import a_head
from webapp.alerts.models import Alert
from webapp.alerts.selectors import alert_rows
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
    """New alerts, told to open pages."""
    with transaction.atomic():
        outbox_append(feed_id=site.world.feed.pk, alerts=alert_rows(make(site, count, first)))


def test_thousands_of_open_alerts_are_listed_as_far_as_one_looks_and_none_moves_under_the_pointer(site: Site) -> None:
    a_head(site.world.feed)
    make(site, OPEN)
    site.log_in()
    page = site.page
    page.goto(site.address + "/alerts/")
    rows = page.locator("tr[data-alert]")
    rows.first.wait_for()
    page.wait_for_timeout(1000)
    assert rows.count() == 100, "elements for what can be seen, not for all"
    page.locator("button", has_text="Show older").evaluate("(button) => button.scrollIntoView()")
    site.world.wait(lambda: rows.count() >= 200, 20, "more rows where one scrolls to")
    page.mouse.wheel(0, -100_000)
    top = page.get_by_role("button", name=f"walker {OPEN - 1}", exact=True)
    top.hover()
    come(site, 40, OPEN)
    held = page.get_by_role("button", name="40 new, show")
    held.wait_for()
    page.wait_for_timeout(300)
    assert rows.first.get_by_role("button", name=f"walker {OPEN - 1}", exact=True).count() == 1
    held.click()
    page.get_by_role("button", name=f"walker {OPEN + 39}", exact=True).wait_for()
    page.mouse.move(3, 3)
    come(site, 5, OPEN + 40)
    page.get_by_role("button", name=f"walker {OPEN + 44}", exact=True).wait_for()
    assert site.faults == []
