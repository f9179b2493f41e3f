"""A file of regions becomes queries on the page; ranges are chosen with the slider's keys."""

from __future__ import annotations

import json
import re

import pytest

from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]


def _feature(name: str, ring: list[list[int]]) -> dict[str, object]:
    return {"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Polygon", "coordinates": [ring]}}


def test_the_regions_of_a_file_become_queries_and_the_faulty_one_is_reported(site: Site) -> None:
    from webapp.queries.models import Query

    squares = [_feature(f"cell {n}", [[2 * n, 0], [2 * n + 1, 0], [2 * n + 1, 1], [2 * n, 1], [2 * n, 0]]) for n in range(3)]
    bow_tie = _feature("bow tie", [[0, 0], [4, 4], [4, 0], [0, 4], [0, 0]])
    text = json.dumps({"type": "FeatureCollection", "features": [*squares, bow_tie]})
    site.log_in()
    page = site.page
    page.goto(site.address + "/queries/")
    page.get_by_role("link", name="From a file").click()
    page.locator("#bulk-naming").wait_for()
    page.locator(".query-left input[type=file]").set_input_files(
        files=[{"name": "cells.geojson", "mimeType": "application/geo+json", "buffer": text.encode()}]
    )
    page.get_by_text("3 new, 1 refused").wait_for()
    assert page.locator(".bulk-table tbody tr").first.inner_text().startswith("4")
    assert page.locator("#save-query").is_disabled()
    page.fill("#bulk-naming", "Crossed: {name}")
    page.locator("#bulk-partial").check()
    page.get_by_role("button", name="Register 3 queries").click()
    page.wait_for_url(re.compile(r"/queries/\?feed="))
    page.get_by_text("3 queries are registered").wait_for()
    assert set(Query.objects.filter(name__startswith="Crossed").values_list("name", flat=True)) == {f"Crossed: cell {n}" for n in range(3)}
    before = Query.objects.filter(deleted_at=None).count()
    page.fill("input[type=search]", "Crossed: cell")
    page.get_by_role("button", name="Remove these").click()
    page.get_by_role("button", name="Remove 3 queries").click()
    page.get_by_text("3 queries are removed").wait_for()
    assert Query.objects.filter(deleted_at=None).count() == before - 3
    assert not Query.objects.filter(name__startswith="Crossed", deleted_at=None).exists()
