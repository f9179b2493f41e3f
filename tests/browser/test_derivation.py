"""A query's page shows the queries that it derives from and those that derive from it, and asks
before others are stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.crash.world import SINCE, VISITS
from webapp.queries.models import Query

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services, pytest.mark.slow]


def test_a_query_page_lists_upstream_and_downstream_queries_and_a_removal_warns_of_them(site: Site) -> None:
    visits = site.world.register("visits", VISITS)
    site.world.register("since", SINCE)
    site.log_in()
    page: Any = site.page
    page.goto(f"{site.address}/queries/{visits.pk}")
    above = page.locator(".form-section", has=page.get_by_role("heading", name="Derives from", exact=True))
    above.wait_for()
    assert above.locator("li").count() == 2 and "crossings" in above.inner_text()
    below = page.locator(".form-section", has=page.get_by_role("heading", name="What derives from it"))
    assert "since" in below.inner_text()
    below.get_by_role("link", name="since").wait_for()
    below.scroll_into_view_if_needed()
    page.get_by_role("button", name="Remove").first.click()
    page.get_by_role("button", name="Remove query").click()
    asked = page.get_by_text("This would stop 'since', derived from what is removed")
    asked.wait_for()
    page.get_by_role("button", name="Cancel").last.click()
    assert Query.objects.filter(pk=visits.pk, deleted_at=None).exists()
    # The refusal is reported in the console, as every 400 is.
    site.faults.clear()


def test_a_duplicate_is_put_into_a_folder_and_found_in_the_list(site: Site) -> None:
    original = Query.objects.get(name="crossings")
    site.log_in()
    page: Any = site.page
    page.goto(f"{site.address}/queries/{original.pk}")
    page.get_by_role("link", name="Duplicate").click()
    page.wait_for_url(f"**/queries/new?copy={original.pk}")
    page.locator(".sentence .sentence-text").wait_for()
    assert page.locator("#query-name").input_value() == "crossings (copy)"
    page.locator("#query-folder").fill("Gate/Night")
    page.locator("#query-tags").fill("weekly, gate")
    page.locator("#save-query").click()
    page.wait_for_url("**/?feed=yard")
    copy = Query.objects.get(name="crossings (copy)")
    assert (copy.specification, copy.alert_kinds, copy.severity) == (original.specification, original.alert_kinds, original.severity)
    assert (copy.folder, copy.tags) == ("Gate/Night", ["weekly", "gate"])
    page.goto(f"{site.address}/queries/")
    page.locator(".folder-row", has_text="Gate/Night").wait_for()
    page.get_by_label("Only mine").check()
    page.get_by_label("Tag", exact=True).select_option("gate")
    assert page.locator(".queries-table .title-link").all_inner_texts() == ["crossings (copy)"]


def test_the_change_of_another_tab_is_not_replaced_without_a_question(site: Site) -> None:
    site.log_in()
    address = f"{site.address}/queries/{site.world.stays.pk}"
    first, second = site.page, site.context.new_page()
    for page in (first, second):
        page.goto(address)
        page.locator(".sentence .sentence-text").wait_for()
    second.fill("#query-name", "of the other")
    with second.expect_response(lambda answer: answer.request.method == "PATCH"):
        second.locator("#save-query").click()
    first.fill("#query-name", "mine")
    first.locator("#save-query").click()
    first.get_by_text("This query has been changed meanwhile").wait_for()
    first.get_by_role("button", name="Cancel", exact=True).click()
    assert Query.objects.get(pk=site.world.stays.pk).name == "of the other"
    first.locator("#save-query").click()
    with first.expect_response(lambda answer: answer.request.method == "PATCH"):
        first.get_by_role("button", name="Save mine", exact=True).click()
    assert Query.objects.get(pk=site.world.stays.pk).name == "mine"
