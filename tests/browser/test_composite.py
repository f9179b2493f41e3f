"""An analyst writes a composite event: a tree built by keyboard, with its text and its sentence,
and the text applied to the tree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services, pytest.mark.slow]


def test_a_theft_pattern_can_be_entered_by_keyboard_and_saved(site: Site) -> None:
    site.log_in()
    page = site.page
    page.goto(site.address + "/queries/new?feed=yard&family=composite")
    page.get_by_role("treeitem", name="SEQUENCE").focus()
    _tree(page)
    _text(page)
    _save(site)
    _only_looked_at(site)
    assert site.faults == []


def _press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def _called(page: Page, name: str) -> None:
    """Names the chosen leaf; Enter moves the focus to its name and back to the tree."""
    _press(page, "Enter")
    page.keyboard.type(name)
    _press(page, "Enter")
    page.get_by_role("treeitem", name=re.compile(rf"\b{name}\b")).and_(page.locator(":focus")).wait_for()


def _items(page: Page) -> list[str]:
    return page.locator(".pattern-name, .pattern-operator").all_inner_texts()


def _tree(page: Page) -> None:
    """A : B becomes SHELF : !CHECKOUT : EXIT; a part is added, moved and
    removed without further effect."""
    _press(page, "ArrowDown")
    _called(page, "SHELF")
    _press(page, "ArrowDown")
    _called(page, "EXIT")
    _press(page, "b")
    _called(page, "CHECKOUT")
    assert _items(page) == ["SEQUENCE", "SHELF", "CHECKOUT", "EXIT"]
    _press(page, "End", "o", "Alt+ArrowUp")
    assert _items(page) == ["SEQUENCE", "SHELF", "CHECKOUT", "OR", "A", "EXIT"], "joined by OR, then moved before its neighbour"
    _press(page, "Delete")
    # A part that was removed by mistake comes back, and each change before it.
    _press(page, "Control+z")
    assert _items(page) == ["SEQUENCE", "SHELF", "CHECKOUT", "OR", "A", "EXIT"]
    _press(page, "Control+z", "Control+z")
    assert _items(page) == ["SEQUENCE", "SHELF", "CHECKOUT", "EXIT"]
    _press(page, "End", "o", "Alt+ArrowUp", "Delete")
    page.get_by_role("treeitem", name="EXIT").and_(page.locator(":focus")).wait_for()
    assert page.locator("#pattern-text").input_value() == "SHELF : !CHECKOUT : EXIT"
    page.locator(".pattern-words", has_text="SHELF, then EXIT with no CHECKOUT in between.").wait_for()
    page.locator(".pattern-evaluation", has_text=re.compile(r"when EXIT comes, and only if SHELF came in the 10 min before")).wait_for()
    assert page.get_by_role("treeitem", name="EXIT").locator(".pattern-trigger").count() == 1
    assert page.get_by_role("treeitem", name="SHELF").locator(".badge").all_inner_texts() == ["needed"]


def _text(page: Page) -> None:
    """A fault has its line and column; an undefined name can be defined; times of
    the text appear in the tree."""
    page.locator("#pattern-text").fill("SHELF :\n!CHECKOUT :[0,PT5M EXIT")
    fault = page.locator(".trigger-fault")
    fault.get_by_text("line 2, column 20").wait_for()
    page.locator("#pattern-text").fill("SHELF : !TILL :[0,PT5M] EXIT")
    page.get_by_role("button", name="Define TILL").click()
    page.get_by_role("treeitem", name=re.compile("then within 5 min EXIT")).wait_for()
    fault.wait_for(state="detached")
    assert _items(page) == ["SEQUENCE", "SHELF", "TILL", "EXIT"]


def _save(site: Site) -> None:
    page = site.page
    page.get_by_role("treeitem", name=re.compile("SHELF")).click()
    page.get_by_role("button", name="Add a condition").first.click()
    page.locator("#primitive-where-column-0").select_option("entity")
    page.locator("#primitive-where-value-0").fill("anna")
    page.get_by_role("treeitem", name=re.compile("SHELF entity = anna")).wait_for()
    page.locator(".sentence-text", has_text="SHELF means entity is anna").wait_for()
    page.fill("#query-name", "theft")
    page.get_by_role("button", name="Register query").click()
    page.wait_for_url(re.compile(r"/\?feed=yard"))
    assert _stored("theft") == {
        "family": "composite",
        "version": 1,
        "pattern": "SHELF : !TILL :[0,PT5M] EXIT",
        "primitives": {"SHELF": {"where": [["entity", "=", "anna"]]}, "TILL": {}, "EXIT": {}},
        "per": "entity",
        "within": "PT10M",
    }


def _only_looked_at(site: Site) -> None:
    """Nothing was entered in the stored query: no question when the reader leaves."""
    from webapp.queries.models import Query

    page, asked = site.page, list[str]()
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.goto(f"{site.address}/queries/{Query.objects.get(name='theft').pk}")
    page.get_by_role("treeitem", name=re.compile("EXIT")).click()
    page.goto(site.address + "/queries/")
    assert asked == []


def _stored(name: str) -> Any:
    from webapp.queries.models import Query

    return Query.objects.get(name=name).specification
