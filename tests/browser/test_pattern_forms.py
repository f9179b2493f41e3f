"""An analyst fills newer forms, each by mouse and by keyboard: sums, negations, answers as events.

Each query is tried, saved, opened again and saved unchanged: the stored document stays the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.forms import KEY_MS, choose, new_query, preview, saved, slow_network, tab_to, type_in, walked

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services, pytest.mark.slow]


def test_forms_cover_sums_negation_and_derived_events(site: Site) -> None:
    yard = walked(site)
    _sum_by_mouse(yard)
    _sum_by_keyboard(yard)
    _negation_by_mouse(yard)
    _negation_by_keyboard(yard)
    _derived_by_mouse(yard)
    _derived_by_keyboard(yard)
    _derived_in_rules(yard)
    yard.page.close()
    assert yard.faults == []


# -- sums ------------------------------------------------------------------------------------------


def _sum_by_mouse(site: Site) -> None:
    """In the form of the graph, in the place of the comparison that is
    proposed; the edge shows the sum."""
    page = new_query(site, "constraint")
    page.locator("#mutual-count").fill("2")
    page.locator("#mutual-distance").fill("3")
    page.get_by_role("button", name="Graph", exact=True).click()
    page.get_by_role("button", name="1: V1, V2").click()
    page.locator("#compare-left-0").fill("V1.x - V2.x")
    page.locator("#compare-operator-0").select_option(">")
    page.locator("#compare-right-0").fill("0.5 + 1")
    page.locator("#compare-right-0").fill("2 * V2.y - 9")
    page.locator(".graph-label", has_text="V1.x - V2.x > 2 * V2.y - 9").wait_for()
    page.locator(".sentence-text", has_text="V1.x - V2.x is above 2 * V2.y - 9").wait_for()
    stored = saved(site, "slope")
    assert stored["constraints"][0]["compare"] == [["V1.x - V2.x", ">", "2 * V2.y - 9"]]


def _sum_by_keyboard(site: Site) -> None:
    """In the text; a fault is shown with its place."""
    with site.page.expect_response(lambda answer: "queries/closure" in answer.url):
        page = new_query(site, "constraint")
    page.locator(".sentence .sentence-text").wait_for()
    tab_to(page, "[data-view=text]")
    page.keyboard.press("Enter")
    tab_to(page, "#trigger-text")
    page.keyboard.press("Control+A")
    page.keyboard.type("CREATE TRIGGER near FOR E AS A, E AS B WHEN B.t - A.t IN [0, 500] AND A.x - B.z < 1")
    page.locator(".trigger-fault", has_text="'z'").wait_for()
    page.keyboard.press("Control+A")
    page.keyboard.type("CREATE TRIGGER near FOR E AS A, E AS B WHEN B.t - A.t IN [0, 500] AND A.x - B.x < 0.01 AND B.x - A.x < 0.01")
    page.locator(".trigger-fault").wait_for(state="detached")
    assert preview(page, by_keyboard=True) >= 0
    stored = saved(site, "same line", by_keyboard=True)
    assert "A.x - B.x < 0.01" in stored["trigger"]


# -- negations -------------------------------------------------------------------------------------


def _negation_by_mouse(site: Site) -> None:
    """A : B becomes A without a guard around it."""
    page = new_query(site, "composite")
    page.get_by_role("treeitem", name=re.compile(r"\bB\b")).click()
    page.get_by_role("button", name=re.compile(r"^Remove")).first.click()
    page.get_by_role("treeitem", name=re.compile(r"\bA\b")).click()
    page.get_by_role("button", name="Not around").click()
    page.locator(".pattern-words", has_text=re.compile("A with no [A-Z] from 5 minutes before until 5 minutes after")).wait_for()
    page.get_by_role("treeitem", name=re.compile("NOT AROUND")).click()
    page.locator("#pattern-span").fill("1")
    page.locator("#pattern-span-unit").select_option("s")
    page.locator(".pattern-words", has_text="from 1 second before").wait_for()
    assert preview(page) >= 0
    stored = saved(site, "guarded")
    assert re.fullmatch(r"A AND ![A-Z]\[PT1S\]", stored["pattern"])


def _negation_by_keyboard(site: Site) -> None:
    """B without A in the minute before, then reversed and restored in the text."""
    page = new_query(site, "composite")
    page.get_by_role("treeitem", name="SEQUENCE").focus()
    page.keyboard.press("End")
    page.keyboard.press("p")
    page.locator(".pattern-words", has_text=re.compile("no [A-Z] in the 5 minutes before")).wait_for()
    names = page.locator(".pattern-name, .pattern-operator").all_inner_texts()
    assert names[:3] == ["SEQUENCE", "A", "NOT BEFORE"]
    stored = saved(site, "unannounced", by_keyboard=True)
    assert re.fullmatch(r"A : \(![A-Z]\[PT5M\] : B\)", stored["pattern"])


# -- answers of other queries as events ------------------------------------------------------------


def _derived_by_mouse(site: Site) -> None:
    """In, then out again: a pattern over the answers of a stored query."""
    page = new_query(site, "composite")
    page.get_by_text("Answers of other queries as events").click()
    page.locator("#add-derived:enabled").click()
    page.locator("#derive-query-0").fill("crossings")
    page.locator("#derive-query-0").blur()
    page.locator("#derive-event-0").fill("entered")
    page.locator("#derive-event-0").blur()
    page.get_by_role("treeitem", name=re.compile(r"\bA\b")).click()
    page.get_by_role("button", name="Add a condition").first.click()
    page.locator("#primitive-where-column-0").select_option("event")
    page.locator("#primitive-where-value-0").fill("entered")
    page.locator(".sentence-text", has_text="An event entered is each answer “Entered” of crossings, at its end").wait_for()
    assert preview(page) > 0
    stored = saved(site, "in and on")
    assert stored["derive"] == {"entered": {"query": "crossings", "kind": "in", "at": "end"}}
    assert stored["primitives"]["A"] == {"where": [["event", "=", "entered"]]}


def _derived_by_keyboard(site: Site) -> None:
    """The other kind of answer; conditions may use the columns of answers. Text typed while the
    server still checks is kept."""
    page = new_query(site, "composite")
    tab_to(page, "[data-pointer='/derive'] summary")
    page.keyboard.press("Enter")
    page.locator("#add-derived:enabled").wait_for()
    with slow_network(page):
        tab_to(page, "#add-derived")
        page.keyboard.press("Enter")
        page.keyboard.press("Control+A")
        page.keyboard.type("crossings", delay=KEY_MS)
        choose(page, "#derive-kind-0", "Left")
        type_in(page, "#derive-event-0", "gone")
    page.keyboard.press("Tab")
    stored = saved(site, "gone", by_keyboard=True)
    assert stored["derive"] == {"gone": {"query": "crossings", "kind": "out", "at": "end"}}


def _derived_in_rules(site: Site) -> None:
    """Rules over the answers of a stored query: tried with its stored
    answers, saved, and tried again."""
    page = new_query(site, "calculus")
    page.get_by_text("Answers of other queries as events").click()
    page.locator("#add-derived:enabled").click()
    page.locator("#derive-query-0").fill("crossings")
    page.locator("#derive-query-0").blur()
    page.locator("#derive-event-0").fill("came")
    page.locator("#derive-event-0").blur()
    page.get_by_label("Rules of the program").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("initiatedAt(been(X)=true, T) :- happensAt(came(X), T).")
    page.get_by_label("been(X)").check()
    _tried(site)
    stored = saved(site, "been")
    assert stored["derive"] == {"came": {"query": "crossings", "kind": "in", "at": "end"}}
    assert stored["inputs"]["came"]["args"] == ["entity"]
    _tried(site)


def _tried(site: Site) -> None:
    """The lanes of fluents that the other query's answers initiate; on a busy machine the trial may
    exceed its time limit, which is then reported."""
    page = site.page

    def shown() -> bool:
        page.locator("#run-sandbox").click()
        page.locator(".sandbox-summary, .sandbox-body .empty").first.wait_for()
        page.locator(".sandbox-body [aria-busy]").wait_for(state="detached")
        return page.locator(".sandbox-lanes").count() > 0

    site.world.wait(shown, 60, "the rules are tried")
