"""Three recordings become feeds with a first query, using only the mouse, in a browser
with a running installation.

    python -m bench.first_steps --url http://127.0.0.1:8000 --password ... --data FOLDER
        [--pictures FOLDER]

FOLDER has recordings as a new user would have them; any file that the page *New feed* accepts is
suitable. For each the browser opens *New feed*, chooses the file, accepts every guess, loads it,
chooses a question (of a file whose name ends in `.nmea` how many are there, else who crosses a
border), draws a rectangle, requests the preview, registers the query and opens its answers. It
clicks and chooses files only: nothing is typed but the password. Prints how long each took, and
fails when one has no answer within three minutes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

TIMEOUT_MS = 120_000
WIDTH, HEIGHT = 1280, 800
INNER = 0.5
"""The rectangle covers this share of the map's width and height."""
LONGEST_S = 180.0


class Pictures:
    """Screenshots after each step, if a folder for them is set."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def take(self, page: Page, name: str) -> None:
        if self.folder is not None:
            page.wait_for_timeout(600)
            page.screenshot(path=self.folder / f"{name}.png")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="analyst")
    parser.add_argument("--password", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    files = sorted(path for path in options.data.iterdir() if path.is_file())
    slow = 0
    with logged_in(options.url, options.user, options.password) as page:
        for file in files:
            began = time.monotonic()
            loaded, answers = walk(page, options.url, file, Pictures(options.pictures))
            taken = time.monotonic() - began
            slow += taken > LONGEST_S or answers == 0
            print(f"{file.name:<24} loaded after {loaded:5.1f} s, {answers} answers on the page after {taken:5.1f} s", flush=True)
    return 1 if slow else 0


@contextmanager
def logged_in(url: str, user: str, password: str) -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce").new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(f"{url}/login/")
        page.fill("#username", user)
        page.fill("#password", password)
        page.click("button[type=submit]")
        page.locator(".rail").wait_for()
        yield page
        browser.close()


def walk(page: Page, url: str, file: Path, pictures: Pictures) -> tuple[float, int]:
    """One recording, from the first page to its first answers: (seconds until it was
    loaded, answers on the page)."""
    began, name = time.monotonic(), file.stem
    page.goto(url)
    page.locator(".rail").get_by_role("link", name="Feeds").click()
    page.get_by_role("link", name="New feed").first.click()
    page.get_by_text("Drop a recording here").wait_for()
    pictures.take(page, f"{name}-1-new")
    with page.expect_file_chooser() as chooser:
        page.get_by_text("Drop a recording here").click()
    chooser.value.set_files(file)
    page.get_by_text("The first rows, as they are in the file").wait_for()
    pictures.take(page, f"{name}-2-meaning")
    page.get_by_role("button", name="Make the feed and load the file").click()
    page.locator(".wizard-load[data-state=done]").wait_for()
    pictures.take(page, f"{name}-3-loaded")
    loaded = time.monotonic() - began
    page.get_by_role("link", name="Make a query").click()
    page.get_by_role("button", name="Draw a rectangle").wait_for()
    if file.suffix == ".nmea":
        # Receivers' logs are short: nothing crosses a border.
        page.locator(".family-card", has_text="How many are there").click()
    _draw(page)
    page.locator(".sentence-text").wait_for()
    page.get_by_role("button", name="Preview", exact=True).click()
    page.locator(".preview-total, .preview-result .empty").first.wait_for()
    pictures.take(page, f"{name}-4-query")
    page.get_by_role("button", name="Register query").click()
    count = page.locator(".query-count > div").first
    count.wait_for()
    answers = _number(page, count)
    pictures.take(page, f"{name}-5-answers")
    return loaded, answers


def _draw(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    page.get_by_role("button", name="Draw a rectangle").click()
    box = page.locator(".query-map .leaflet-container").bounding_box()
    assert box is not None
    # The map may reach below the window.
    height = min(box["height"], HEIGHT - box["y"])
    x, y, w, h = box["x"] + box["width"] / 2, box["y"] + height / 2, INNER * box["width"] / 2, INNER * height / 2
    page.mouse.click(x - w, y - h)
    page.mouse.move(x, y)
    page.mouse.click(x + w, y + h)
    page.get_by_text("Polygon, 4 corners").wait_for()


def _number(page: Page, count: Locator) -> int:
    """The answers that the query has on the page, once there are some."""
    until = time.monotonic() + TIMEOUT_MS / 1000
    while time.monotonic() < until:
        text = count.inner_text().replace(",", "")
        if text.isdigit() and int(text) > 0:
            return int(text)
        page.wait_for_timeout(200)
    return 0


if __name__ == "__main__":
    sys.exit(main())
