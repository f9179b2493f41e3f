"""A timeline with more answers than can be fetched singly shows counts of all, with a notice, and
single answers where there are few."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from tests.browser.answering import Answering
from tests.browser.page_state import PRESENT
from webapp.detections.models import Detection
from webapp.detections.partitions import partitions_ensure

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]

ANSWERS, SPAN = 15_000, 7_200_000
STORED = """
INSERT INTO detections_detection (feed_id, key, query_id, version, kind, entities, start, "end", evidence, weight, backfill, seq, detected_at)
SELECT %s, decode(md5(i::text), 'hex'), %s, 1, 'passed', ARRAY['old-' || i %% 50], -i * %s, -i * %s, NULL, 1, false, 1, 1
FROM generate_series(1, %s) AS i
"""


def shown_total(site: Site, query: str) -> int:
    row = site.page.locator(".query-item", has_text=query).locator(".query-count > div").first
    return int(re.sub(r"\D", "", row.inner_text()) or 0)


def chosen_start(site: Site) -> int | None:
    """The start of the answer in the page's address."""
    found = re.search(r"[?&]detection=([0-9a-f]{32})", site.page.evaluate("location.href"))
    return None if found is None else Detection.objects.get(key=bytes.fromhex(found[1])).start


def test_a_long_window_shows_counts_instead_of_single_answers(site: Site) -> None:
    site.world.append(500)
    Answering(site.world).catch_up()
    partitions_ensure([-1])
    every = SPAN // ANSWERS
    with connection.cursor() as cursor:
        cursor.execute(STORED, [site.world.feed.pk, site.world.stays.pk, every, every, ANSWERS])
    stored = Detection.objects.filter(query_id=site.world.stays.pk, weight=1).count()
    assert stored >= ANSWERS
    site.log_in()
    page = site.page
    page.goto(f"{site.address}/?feed=yard&span={2 * SPAN}&at=5~5~5.5")
    page.locator(PRESENT).wait_for()
    page.get_by_text("Older answers are counted: zoom in for single ones").wait_for()
    site.world.wait(lambda: shown_total(site, "stays") == stored, 20, f"{stored} answers are counted")
    # The next and the previous answer are found although they are only counted.
    page.goto(f"{site.address}/?feed=yard&window={-SPAN}~-1&t={-SPAN // 2 + 1}&at=5~5~5.5")
    page.get_by_text("Older answers are counted: zoom in for single ones").wait_for()
    for key, start in (("j", every), ("j", 2 * every), ("k", every), ("k", 0)):
        page.keyboard.press(key)
        site.world.wait(lambda start=start: chosen_start(site) == -SPAN // 2 + start, 20, f"the answer {start} ms later is chosen")
    # Ten minutes an hour ago: few enough to be shown one by one.
    page.goto(f"{site.address}/?feed=yard&window={-SPAN // 2}~{-SPAN // 2 + 600_000}&t={-SPAN // 2 + 300_000}&at=5~5~5.5")
    page.locator(".state-past").wait_for()
    inside = Detection.objects.filter(query_id=site.world.stays.pk, start__gte=-SPAN // 2, start__lt=-SPAN // 2 + 600_000).count()
    site.world.wait(lambda: not page.locator(".coverage-note").is_visible(), 20, "single answers are shown")
    site.world.wait(lambda: abs(shown_total(site, "stays") - inside) <= 1, 20, f"{inside} answers are shown")
    assert site.faults == []
