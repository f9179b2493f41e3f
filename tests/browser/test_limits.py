"""The forms for limits of users and teams: quotas, a token for one feed, a team's own job."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]


def shot(site: Site, name: str) -> None:
    """Takes a screenshot, if a folder for screenshots is set."""
    if folder := os.environ.get("SCREENSHOTS"):
        for theme in ("light", "dark"):
            site.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            site.page.screenshot(path=f"{folder}/{name}-{theme}.png")
        size = site.page.viewport_size
        site.page.set_viewport_size({"width": 390, "height": 844})
        site.page.screenshot(path=f"{folder}/{name}-telephone.png")
        site.page.set_viewport_size(size or {"width": 1280, "height": 860})


def test_an_administrator_sets_a_teams_quotas_and_a_person_sees_theirs(site: Site) -> None:
    from webapp.accounts.models import Team, User

    User.objects.filter(username="ada").update(is_superuser=True)
    site.log_in()
    page = site.page
    page.goto(site.address + "/teams/")
    page.get_by_role("button", name="Quotas of watch").click()
    field = page.get_by_label("Allowed queries")
    assert field.input_value() == "" and field.get_attribute("placeholder") == "500,000"
    field.fill("many")
    page.get_by_role("button", name="Set", exact=True).click()
    page.get_by_text("A valid integer is required").wait_for()
    site.faults.clear()
    field.fill("7")
    shot(site, "team-quotas")
    page.get_by_role("button", name="Set", exact=True).click()
    page.get_by_text("The quotas are set").wait_for()
    assert Team.objects.get().quotas == {"queries": 7}
    page.get_by_role("button", name="Quotas of ada").click()
    page.get_by_label("Allowed feeds").fill("4")
    page.get_by_role("button", name="Set", exact=True).click()
    page.get_by_role("dialog").wait_for(state="detached")
    page.goto(site.address + "/account/")
    row = page.get_by_role("region", name="Quotas").or_(page.locator("#quotas")).locator("tr[data-quota=feeds]")
    row.wait_for()
    assert row.inner_text().split() == ["feeds", "1", "4"]
    shot(site, "account-quotas")
    assert site.faults == []


def test_a_token_for_one_feed_and_a_job_of_a_team(site: Site) -> None:
    from webapp.accounts.models import ApiToken, Team
    from webapp.jobs.models import FeedHead, Job

    site.world.feed.team = Team.objects.get()
    site.world.feed.save()
    site.log_in()
    page = site.page
    page.goto(site.address + "/account/")
    page.get_by_role("button", name="New token").click()
    page.get_by_label("Name", exact=True).fill("gateway")
    page.get_by_label("Read everything you can see").check()
    page.get_by_label("Valid for").select_option("yard")
    assert not page.get_by_label("Read everything you can see").is_checked()
    page.get_by_label("It expires").select_option(label="In 365 days, the longest")
    shot(site, "new-token")
    page.get_by_role("button", name="Make token").click()
    page.get_by_role("button", name="Done").click()
    page.get_by_text("to yard alone").wait_for()
    page.locator("#quotas tr[data-quota=tokens]").get_by_text("1", exact=True).wait_for()
    token = ApiToken.objects.get()
    assert token.scopes == ["ingest"] and token.feed == site.world.feed

    page.goto(site.address + "/feeds/")
    page.get_by_role("button", name="New job").click()
    page.get_by_label("Name", exact=True).fill("quay")
    page.get_by_role("button", name="Make job").click()
    page.get_by_role("heading", name="Job quay").wait_for()
    page.get_by_label("Job of yard").select_option("quay")
    page.get_by_text("The job quay continues with yard").wait_for()
    assert FeedHead.objects.get().job == Job.objects.get(name="quay")
    shot(site, "team-job")
    page.get_by_label("Job of yard").blur()
    page.get_by_label("Job of yard").select_option("main")
    page.get_by_text("The job main continues with yard").wait_for()
    page.get_by_role("button", name="Remove the job quay").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove job").click()
    page.get_by_role("heading", name="Job quay").wait_for(state="detached")
    assert [job.name for job in Job.objects.all()] == ["main"]
    assert site.faults == []
