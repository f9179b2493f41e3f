"""A site as its users meet it: the real web server and publisher over the test database, and the system's Chromium before it."""

from __future__ import annotations

import os
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from webapp.platform.folders import ROOT, next_free_port

if TYPE_CHECKING:
    import subprocess

    from playwright.sync_api import Browser, Page, Playwright

    from tests.crash.world import World

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"
]  # fmt: skip
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PASSWORD = "watches over the yard"
TIMEOUT_MS = 60_000


def launched(playwright: Playwright) -> Browser:
    program = next((found for found in map(shutil.which, PROGRAMS) if found), None)
    assert program is not None, "the browser tests need Chromium: apt-get install chromium"
    return playwright.chromium.launch(executable_path=program, args=ARGUMENTS)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium, headless."""
    from playwright.sync_api import sync_playwright

    assert (ROOT / "static" / "build" / ".vite" / "manifest.json").is_file(), "the front end is not built: run make setup"
    with sync_playwright() as playwright:
        # Playwright's own loop runs in this thread, which Django takes for an asynchronous caller of its ORM.
        before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        chromium = launched(playwright)
        yield chromium
        chromium.close()
        if before is None:
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


class Site:
    """A world (one planar feed, two queries), the processes that serve it, and one page of one reader."""

    def __init__(self, world: World, browser: Browser) -> None:
        self.world = world
        # Test runs side by side on one machine look for a port in different places.
        reservation = next_free_port(8900 + os.getpid() % 400)
        self.port = reservation.port
        reservation.release()
        self.address = f"http://127.0.0.1:{self.port}"
        self.web: subprocess.Popen[bytes] | None = None
        self.faults: list[str] = []
        self.context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
        self.context.set_default_timeout(TIMEOUT_MS)
        self.page: Page = self.context.new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _heard(self, message: Any) -> None:
        # A server that is away on purpose is reported in the console too; so is one that is too busy for a trial, which is asked again.
        expected = ("ERR_CONNECTION", "WebSocket connection", "status of 503")
        if message.type == "error" and not any(text in message.text for text in expected):
            self.faults.append(f"{message.text} {message.location.get('url', '')}".strip())

    def start_web(self) -> None:
        self.web = self.world.start(
            sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(self.port), "webapp.config.asgi:application", name="web"
        )
        self.world.wait(self._answers, 60, "the web server answers")

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.address + "/healthz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def kill_web(self) -> None:
        assert self.web is not None
        self.web.kill()
        self.web.wait()

    def log_in(self) -> None:
        self.page.goto(self.address + "/login/")
        self.page.fill("#username", "ada")
        self.page.fill("#password", PASSWORD)
        self.page.click("button[type=submit]")
        self.page.wait_for_url(self.address + "/**")

    def close(self) -> None:
        self.context.close()


@pytest.fixture
def site(transactional_db: None, tmp_path: Path, settings: Any, redis_url: str, browser: Browser) -> Iterator[Site]:
    """Web server and publisher run; no job yet."""
    from tests.crash.world import World
    from webapp.accounts.models import Membership, Role, Team

    before = os.environ["VEDETTE_VAR"]
    for name in ("VAR", "VEDETTE_LOG_STORE", "EVENT_LOG_ROOT", "CHECKPOINT_ROOT"):
        setattr(settings, name, getattr(settings, name))
    world = World(tmp_path, redis_url=redis_url)
    reader = world.feed.owner
    reader.set_password(PASSWORD)
    reader.save()
    # Who is in no team makes nothing.
    Membership.objects.create(user=reader, team=Team.objects.create(name="watch"), role=Role.OPERATOR)
    made = Site(world, browser)
    try:
        world.start(sys.executable, "manage.py", "publish", name="publisher")
        made.start_web()
        yield made
    finally:
        made.close()
        world.close()
        if made.faults:
            print(*(tmp_path / "web.log").read_text().splitlines()[-200:], sep="\n")
        os.environ["VEDETTE_VAR"] = before
