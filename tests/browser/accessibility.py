"""The faults that axe-core finds on the current page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webapp.platform.folders import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
RUN = """async (rules) => {
  const chosen = rules.length > 0 ? { runOnly: { type: "rule", values: rules } } : {};
  const { violations } = await axe.run(document, { ...chosen, resultTypes: ["violations"] });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target, any, html }) => `${id}: ${target.join(" ")}: ${any[0]?.message ?? html}`));
}"""


def violations(page: Page, *rules: str) -> list[str]:
    """Each as rule, element and fault; only those of `rules`, if given."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    found: list[str] = page.evaluate(RUN, list(rules))
    return found
