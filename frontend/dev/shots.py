"""Screenshots of the pages in headless Chromium: python shots.py [--login USER:PASSWORD] OUT_FOLDER
BASE_URL NAME|PATH|THEME|WIDTHxHEIGHT|WAIT_S ...

Only the name is needed of each. Messages of the console, responses of 400 and more, and pages wider
than their window are reported.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from chromium import ARGS
from playwright.sync_api import Browser, Page, sync_playwright


def listen(page: Page, name: str) -> None:
    page.on("console", lambda message: print(name, "console", message.type, message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: print(name, "PAGE ERROR", error))
    page.on("response", lambda answer: print(name, answer.status, answer.url) if answer.status >= 400 else None)


def logged_in(browser: Browser, base: str, login: str) -> Any:
    """The cookies of a log-in."""
    user, _, password = login.partition(":")
    context = browser.new_context()
    page = context.new_page()
    page.goto(base + "/login/")
    page.fill("#username", user)
    page.fill("#password", password)
    page.click("button[type=submit]")
    page.wait_for_url(base + "/**")
    return context.storage_state()


def shoot(browser: Browser, out: Path, base: str, item: str, state: Any) -> None:
    name, path, theme, size, wait = [*item.split("|"), "", "", "", ""][:5]
    width, height = map(int, (size or "1440x900").split("x"))
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme or "light", storage_state=state)
    page = context.new_page()
    listen(page, name)
    page.goto(base + (path or "/"), timeout=180_000)
    page.wait_for_timeout(float(wait or 4) * 1000)
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        print(name, f"is {wide} pixels wide in a window of {width}")
    page.screenshot(path=out / f"{name}.png", timeout=180_000)
    context.close()


def main(arguments: list[str]) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--login", default="")
    parser.add_argument("out", type=Path)
    parser.add_argument("base")
    parser.add_argument("items", nargs="+")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGS)
        state = logged_in(browser, given.base, given.login) if given.login else None
        for item in given.items:
            shoot(browser, given.out, given.base, item, state)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
