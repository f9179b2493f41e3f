"""Takes the pictures of docs/guide from a running demo:
`python -m tests.browser.pictures ADDRESS RECORDING`, some minutes after `make demo`.

RECORDING becomes a feed, for the pictures of the first steps. The password of the demo's analyst is
read from the environment's VEDETTE_DEMO_PASSWORD, or from var/analyst-password.
tests/checks/test_pictures.py compares the names, selectors and labels with the guide and the pages.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image
from playwright.sync_api import sync_playwright

from bench.first_steps import Pictures, walk
from tests.browser.conftest import TIMEOUT_MS, launched
from webapp.platform.folders import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

IMAGES = ROOT / "docs" / "guide" / "images"
WIDTH, MOST_HEIGHT, QUALITY = 1100, 1460, 72
FORMS = {
    "border": ("strait", "arrivals and departures"),
    "transition": ("city", "Garage 01: calls"),
    "occupancy": ("plaza", "crowd"),
    "encounter": ("strait", "Side by side"),
    "arrival": ("strait", "on their way"),
    "motion": ("city", "Bank tour"),
    "total": ("strait", "loitering"),
    "constraint": ("ocean", "Warm and calm"),
    "composite": ("warehouse", "Shoplifting"),
}
"""For each picture of a form: the feed, and a part of the query's name."""
OTHERS = ("live-city", "alerts", "gallery", "calculus")
FIRST = {"2-meaning": "first-meaning", "4-query": "first-query", "5-answers": "first-answers"}
"""The pictures of the first steps, by the step of `bench.first_steps`."""


def log_in(page: Page, address: str) -> None:
    password = os.environ.get("VEDETTE_DEMO_PASSWORD") or (ROOT / "var" / "analyst-password").read_text().strip()
    page.goto(f"{address}/login/")
    page.fill("input[name=username]", "analyst")
    page.fill("input[name=password]", password)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "login" not in url)


def queries(page: Page, address: str, feed: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.request.get(f"{address}/api/v1/queries/?feed={feed}&page_size=1000").json()["results"]
    return found


def take(page: Page, name: str, whole: bool = False) -> None:
    """The page as a picture for documents: `WIDTH` pixels wide and `MOST_HEIGHT` high at most."""
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement?.blur(); scrollTo(0, 0)")
    taken = IMAGES / f"{name}.png"
    page.screenshot(path=taken, full_page=whole)
    with Image.open(taken) as image:
        size = (WIDTH, image.height * WIDTH // image.width)
        picture = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    picture.crop((0, 0, WIDTH, min(size[1], MOST_HEIGHT))).save(IMAGES / f"{name}.webp", quality=QUALITY, method=6)
    taken.unlink()


def forms(page: Page, address: str) -> None:
    """Each form with its query, and the result of its preview."""
    for name, (feed, part) in FORMS.items():
        row = next(query for query in queries(page, address, feed) if part in query["name"])
        page.goto(f"{address}/queries/{row['id']}")
        page.locator(".sentence .sentence-text").wait_for()
        page.locator("#run-preview").click()
        page.locator(".preview-total").wait_for()
        page.wait_for_timeout(1000)
        take(page, name, whole=True)


def rules(page: Page, address: str) -> None:
    """The program of pursuits with the lanes of its sandbox."""
    row = next(query for query in queries(page, address, "strait") if "Pursuits" in query["name"])
    page.goto(f"{address}/queries/{row['id']}")
    page.locator("#run-sandbox").click()
    page.locator(".sandbox-lanes").wait_for()
    take(page, "calculus")


def others(page: Page, address: str) -> None:
    """The live page, the desk, and the cards of a new query."""
    page.goto(f"{address}/?feed=city")
    page.locator(".timeline-bar").wait_for()
    page.wait_for_timeout(6000)
    take(page, "live-city")
    page.goto(f"{address}/alerts/")
    page.get_by_text("Newest first").first.wait_for(state="attached")
    page.wait_for_timeout(3000)
    take(page, "alerts")
    page.goto(f"{address}/queries/new?feed=strait")
    page.locator(".family-card").first.wait_for()
    page.locator(".leaflet-container").wait_for()
    take(page, "gallery")


class FirstSteps(Pictures):
    """Keeps the steps that the guide shows, under its names."""

    def __init__(self) -> None:
        super().__init__(None)

    def take(self, page: Page, name: str) -> None:
        for step, picture in FIRST.items():
            if name.endswith(f"-{step}"):
                page.wait_for_timeout(600)
                take(page, picture)


def main(address: str, recording: Path) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = launched(playwright)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(TIMEOUT_MS)
        log_in(page, address)
        for one in (others, rules, forms):
            one(page, address)
        walk(page, address, recording, FirstSteps())
        browser.close()
    print(*sorted(str(Path(name).relative_to(ROOT)) for name in IMAGES.glob("*.webp")), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"), Path(sys.argv[2]))
