"""Members of a team are invited, get a role, hand over their objects, and are removed; each step is
checked on the pages of both users."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]


def shot(site: Site, name: str) -> None:
    """Takes a screenshot, if a folder for screenshots is set."""
    if folder := os.environ.get("VEDETTE_SCREENSHOTS"):
        site.page.screenshot(path=f"{folder}/{name}.png")


def test_a_user_is_invited_promoted_demoted_and_removed(site: Site) -> None:
    from webapp.accounts.models import Membership, Role, Team, User
    from webapp.feeds.services import region_create

    Membership.objects.filter(user__username="ada").update(role=Role.ADMIN)
    site.log_in()
    page = site.page
    page.goto(f"{site.address}/teams/")
    page.get_by_role("button", name="Invite someone to watch").click()
    page.get_by_label("E-mail address").fill("no address")
    page.get_by_role("button", name="Invite", exact=True).click()
    page.get_by_text("valid email").wait_for()
    page.get_by_label("E-mail address").fill("bo@example.org")
    page.get_by_role("button", name="Invite", exact=True).click()
    link = page.get_by_label("Link of the invitation").input_value()
    shot(site, "invited")
    page.get_by_text("Invited as viewer by ada").wait_for()
    page.get_by_role("button", name="Done").press("Enter")
    page.wait_for_function("document.activeElement.getAttribute('aria-label') === 'Invite someone to watch'")

    other = page.context.browser.new_context()  # type: ignore[union-attr]
    try:
        newcomer = other.new_page()
        newcomer.goto(link)
        newcomer.get_by_label("User name").fill("bo")
        newcomer.get_by_label("Password").fill("keeps an eye on it")
        newcomer.get_by_role("button").last.click()
        newcomer.wait_for_url(f"{site.address}/**")
        newcomer.goto(f"{site.address}/teams/")
        newcomer.get_by_text("ada", exact=True).wait_for()
        assert newcomer.get_by_role("button", name="Remove ada from watch").count() == 0, "a viewer removes nobody"
        newcomer.goto(f"{site.address}/account/")
        newcomer.get_by_text("No shift yet").wait_for()
        assert newcomer.get_by_text("you need the role operator in a team").count() == 3
        assert newcomer.get_by_role("button", name=re.compile("New (channel|rule|shift)")).count() == 0, "each was refused at the end of its form"
        newcomer.goto(f"{site.address}/teams/")

        page.reload()
        page.get_by_label("Role of bo").select_option("analyst")
        page.get_by_text("bo is now analyst of watch").wait_for()
        bo, team = User.objects.get(username="bo"), Team.objects.get(name="watch")
        square = {"type": "Polygon", "coordinates": [[[2, 2], [8, 2], [8, 8], [2, 8], [2, 2]]]}
        region = region_create(owner=bo, feed=site.world.feed, name="square", geometry=square, team=team)
        page.get_by_role("button", name="Transfer what bo owns in watch").click()
        page.get_by_role("button", name="Transfer", exact=True).click()
        page.get_by_text("Transferred: 1 region").wait_for()
        region.refresh_from_db()
        assert region.owner.username == "ada"

        page.get_by_role("button", name="Remove bo from watch").click()
        shot(site, "removing")
        page.get_by_role("button", name="Remove", exact=True).click()
        page.get_by_role("button", name="Remove bo from watch").wait_for(state="detached")
        newcomer.reload()
        newcomer.get_by_text("You are in no team").wait_for()
    finally:
        other.close()
    site.faults = [fault for fault in site.faults if "status of 400" not in fault]
    assert site.faults == []
