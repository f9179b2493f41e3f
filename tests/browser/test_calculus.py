"""Rules in the browser: a template in words, its sentence, the sandbox with the rule of each edge,
a fault in its place, and the query saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]


def test_a_template_becomes_a_query_by_way_of_the_sandbox(site: Site) -> None:
    site.world.append(600)
    site.log_in()
    site.page.goto(site.address + "/queries/new?feed=yard&family=calculus")
    _keep(site)
    _choose(site)
    _try(site)
    _break_and_mend(site)
    _save(site)
    _look_back(site)
    assert site.faults == []


def _keep(site: Site) -> None:
    """A template does not lose the rules that were written by hand."""
    page, rules = site.page, site.page.get_by_label("Rules of the program")
    page.get_by_text("Two meet", exact=True).click()
    rules.get_by_text("meeting").first.wait_for()
    assert page.get_by_role("button", name="Bring back my own rules").count() == 0
    rules.click()
    page.keyboard.press("Control+Home")
    page.keyboard.type("% by hand")
    page.get_by_text("Falls silent", exact=True).click()
    page.get_by_role("button", name="Bring back my own rules").click()
    rules.get_by_text("% by hand").wait_for()
    rules.get_by_text("meeting").first.wait_for()
    assert page.get_by_role("button", name="Bring back my own rules").count() == 0


def _choose(site: Site) -> None:
    """Two that stay close for longer than a second: the sentence contains the numbers, and the
    server describes the query in words."""
    page = site.page
    page.get_by_text("Two meet", exact=True).click()
    page.get_by_label("For longer than", exact=True).fill("1")
    page.get_by_label("Unit: For longer than").select_option("s")
    page.get_by_label("Slot of time", exact=True).fill("1")
    page.get_by_label("Unit: Slot of time").select_option("s")
    page.get_by_label("Rules of the program").get_by_text("intDurGreater(In, 1000, I)").wait_for()
    page.get_by_label("Rules of the program").get_by_text("proximity(position, 2, 1000)").wait_for()
    page.locator(".sentence-text", has_text="meeting").wait_for()
    assert page.locator(".placement").count() == 0
    page.get_by_label("Several executors share its work").check()
    page.locator(".placement", has_text="meeting and near by pair").wait_for()
    expect(page.get_by_label("Name", exact=True)).to_have_attribute("placeholder", "Two meet")
    page.get_by_role("button", name="Continue with these rules").click()
    assert page.get_by_label("Column of argument 1 in position").input_value() == "entity"


def _try(site: Site) -> None:
    """Inner fluents have lanes too; the list shows the same as the lanes, and an edge marks its
    rule in the text."""
    page = site.page
    site.world.wait(lambda: _tried(site), 60, "the sandbox answers")
    page.get_by_label("Whose lanes").select_option(label="Everybody")
    page.get_by_role("region", name="Sandbox").get_by_role("button", name="List").click()
    names = page.locator(".sandbox-list .query-name").all_inner_texts()
    assert any(name.startswith("near(") for name in names) and any(name.startswith("meeting(") for name in names)
    page.locator(".sandbox-list .query-name", has_text="meeting(").first.focus()
    page.locator(".sandbox-detail", has_text="Began: line 5").wait_for()
    assert page.locator(".cm-pointed").first.inner_text().startswith("holdsFor(meeting(A, B)=true, I) :-")
    page.get_by_role("region", name="Sandbox").get_by_role("button", name="List").click()
    page.locator(".sandbox-lanes").focus()
    page.keyboard.press("ArrowDown")
    page.locator(".sandbox-detail strong").wait_for()


def _tried(site: Site) -> bool:
    """Runs the sandbox; on a busy machine it may take longer than the server allows, and then
    reports this."""
    page = site.page
    page.get_by_role("button", name="Try it").click()
    page.locator(".sandbox-summary, .sandbox-body .empty").first.wait_for()
    page.locator(".sandbox-body [aria-busy]").wait_for(state="detached")
    return page.locator(".sandbox-lanes").count() > 0


def _break_and_mend(site: Site) -> None:
    """A misspelt fluent is marked at its place, with the nearest known name; what is typed is
    completed."""
    page = site.page
    text = page.get_by_label("Rules of the program")
    text.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("\nholdsFor(long(A, B)=true, I) :- holdsFor(meetin")
    page.keyboard.press("Escape")
    page.keyboard.type("(A, B)=true, I1), intDurGreater(I1, 5, I).")
    page.locator(".cm-lintRange-error", has_text="meetin").wait_for()
    page.locator(".cm-lint-marker-error").hover()
    page.get_by_text("did you mean 'meeting'").first.wait_for()
    page.keyboard.press("Control+End")
    for _ in range(len("(A, B)=true, I1), intDurGreater(I1, 5, I).")):
        page.keyboard.press("Backspace")
    page.keyboard.press("Control+Space")
    page.locator(".cm-tooltip-autocomplete").get_by_text("meeting", exact=True).click()
    page.keyboard.press("Control+End")
    page.keyboard.type(", I1), intDurGreater(I1, 5, I).")
    page.locator(".cm-lintRange-error").wait_for(state="detached")
    page.get_by_label("long(A, B)").check()


def _save(site: Site) -> None:
    from webapp.queries.models import Query

    page = site.page
    page.fill("#query-name", "companions")
    page.get_by_label("Open an alert when something gives “Meeting”").check()
    page.get_by_role("button", name="Register query").click()
    page.wait_for_url(site.address + "/?feed=yard**")
    stored = Query.objects.get(name="companions")
    assert stored.family == "calculus" and stored.alert_kinds == ["meeting"]
    assert stored.specification["outputs"] == ["meeting", "long"]
    assert stored.specification["program"].endswith("intDurGreater(I1, 5, I).")


def _look_back(site: Site) -> None:
    """A user who asks for the rules behind an answer of an earlier version sees those, and a note
    that there are newer ones."""
    from webapp.queries.models import Query
    from webapp.queries.services import query_edit

    page = site.page
    stored = Query.objects.get(name="companions")
    newer = stored.specification["program"].replace("intDurGreater(I1, 5, I)", "intDurGreater(I1, 777, I)")
    query_edit(query=stored, user=stored.owner, specification={**stored.specification, "program": newer})
    page.goto(f"{site.address}/queries/{stored.pk}?version=1&from=0&to=1000&what=meeting&at=500")
    page.get_by_label("Rules of the program").get_by_text("intDurGreater(I1, 5, I)").wait_for()
    page.get_by_text("Version 1 gave this answer").wait_for()
    assert page.locator("#save-query").count() == 0, "what is looked at is not saved by mistake"
    page.get_by_role("link", name="See the newest").click()
    page.get_by_label("Rules of the program").get_by_text("intDurGreater(I1, 777, I)").wait_for()
    assert page.locator(".earlier").count() == 0 and page.locator("#save-query").is_visible()
    # Switched off and on it is the same version (decision 20).
    for enabled in (False, True):
        query_edit(query=stored, user=stored.owner, enabled=enabled)
    page.goto(f"{site.address}/queries/{stored.pk}?version=2&from=0&to=1000&what=meeting&at=500")
    page.get_by_label("Rules of the program").get_by_text("intDurGreater(I1, 777, I)").wait_for()
    page.get_by_text("version 2", exact=True).wait_for()
    assert page.locator(".earlier").count() == 0 and page.locator("#save-query").is_visible()
    page.get_by_role("button", name="Versions").click()
    changed = page.locator(".changes")
    assert "intDurGreater(I1, 5, I)" in changed.locator("del").inner_text()
    assert "intDurGreater(I1, 777, I)" in changed.locator("ins").inner_text()
    page.get_by_role("link", name="Restore…").click()
    page.get_by_text("The form shows version 1.").wait_for()
    page.get_by_label("Rules of the program").get_by_text("intDurGreater(I1, 5, I)").wait_for()
    with page.expect_response(lambda answer: answer.request.method == "PATCH") as answered:
        page.locator("#save-query").click()
    assert answered.value.status == 200
    restored = Query.objects.get(name="companions")
    assert (restored.version, restored.specification["program"]) == (3, stored.specification["program"])
    page.wait_for_url(f"{site.address}/queries/{stored.pk}")
    page.get_by_text("version 3", exact=True).wait_for()
