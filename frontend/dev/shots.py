"""Screenshots of the pages in headless Chromium: python shots.py OUT_FOLDER BASE_URL NAME[:PATH[:THEME[:WIDTHxHEIGHT]]] ..."""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
out, base, *wanted = sys.argv[1:]
Path(out).mkdir(parents=True, exist_ok=True)
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGS)
    for item in wanted:
        name, path, theme, size = [*item.split("|"), "", "", ""][:4]
        width, height = map(int, (size or "1440x900").split("x"))
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme or "light")
        page = context.new_page()
        page.on("console", lambda message: print("console", message.type, message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: print("PAGE ERROR", error))
        page.goto(base + (path or "/"), timeout=180_000)
        page.wait_for_timeout(3500)
        page.screenshot(path=f"{out}/{name}.png", timeout=180_000)
        context.close()
    browser.close()
