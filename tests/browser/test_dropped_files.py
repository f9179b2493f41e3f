"""A file dropped on the page of a new feed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.browser.forms import DROPPED, walked
from webapp.accounts.models import User

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]


def test_a_recording_may_be_dropped_anywhere_on_the_page_of_a_new_feed(site: Site) -> None:
    walked(site)
    page = site.page
    page.goto(f"{site.address}/feeds/new")
    page.get_by_text("Drop a recording here").wait_for()
    rows = "id,lon,lat,time\n" + "".join(f"a,10,54,2026-01-02T10:{n:02}:00Z\n" for n in range(20))
    assert page.evaluate(DROPPED, ["h1", "tracks.csv", rows])
    page.get_by_text("Column that names the thing").wait_for()
    assert site.faults == []


def test_times_that_name_no_zone_may_be_those_of_the_account(site: Site) -> None:
    walked(site)
    User.objects.filter(username="ada").update(time_zone="Europe/Berlin")
    page = site.page
    page.goto(f"{site.address}/feeds/new")
    page.get_by_text("Drop a recording here").wait_for()
    rows = "id,lon,lat,time\n" + "".join(f"a,10,54,2026-01-02 10:{n:02}:00\n" for n in range(20))
    assert page.evaluate(DROPPED, ["h1", "tracks.csv", rows])
    said = page.get_by_text("that of your account is Europe/Berlin")
    said.wait_for()
    page.get_by_label("Time zone of times that name none").select_option("Europe/Berlin")
    said.wait_for(state="detached")
    assert site.faults == []


def test_a_file_that_cannot_be_read_says_why_in_its_place(site: Site) -> None:
    walked(site)
    page = site.page
    square = {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 0]]]}
    regions = json.dumps({"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": square}]})
    for name, text, words in (
        ("notes.txt", "hello", "There are no rows in the file."),
        ("areas.geojson", regions, "import regions on the page Regions"),
    ):
        page.goto(f"{site.address}/feeds/new")
        page.get_by_text("Drop a recording here").wait_for()
        assert page.evaluate(DROPPED, ["h1", name, text])
        page.locator(".wizard").get_by_text(words).wait_for()
        assert page.locator(".wizard .skeleton").count() == 0, "nothing is still loading"
        assert not page.locator(".wizard-map").is_visible()
        assert page.locator(".wizard-sample table:visible").count() == 0
    site.faults.clear()  # The refusal of the first file is in the console.
