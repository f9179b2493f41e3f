"""Screenshots of the real server: python real_shots.py OUT BASE_URL USER PASSWORD NAME|PATH|THEME|SIZE|WAIT_S ..."""

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
out, base, user, password, *wanted = sys.argv[1:]
Path(out).mkdir(parents=True, exist_ok=True)
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGS)
    state = None
    for item in wanted:
        name, path, theme, size, wait = [*item.split("|"), "", "", "", ""][:5]
        width, height = map(int, (size or "1440x900").split("x"))
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme or "light", storage_state=state)
        page = context.new_page()
        page.on("console", lambda message: print("console", message.type, message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: print("PAGE ERROR", error))
        page.on("response", lambda answer: print(answer.status, answer.url) if answer.status >= 400 else None)
        if state is None:
            page.goto(base + "/login/")
            page.fill("#username", user)
            page.fill("#password", password)
            page.click("button[type=submit]")
            page.wait_for_url(base + "/**")
            state = context.storage_state()
        page.goto(base + (path or "/"), timeout=180_000)
        page.wait_for_timeout(float(wait or 5) * 1000)
        page.screenshot(path=f"{out}/{name}.png", timeout=180_000)
        context.close()
    browser.close()
