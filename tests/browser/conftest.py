"""A site as users see it: the real web server and publisher over the test database, and the
system's Chromium."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from webapp.platform.folders import ROOT, next_free_port
from webapp.platform.health import healthy
from webapp.platform.web_server import web_command

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

    from tests.crash.world import World

WITHOUT = (
    # Pages of the address bar, which each window loads in processes of their own, and a process for
    # the next page: together they take as much processor time as a page here.
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "SpareRendererForSitePerProcess",
    # Playwright's own list, which this one replaces.
    "AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "LensOverlay", "MediaRouter", "NetworkTimeServiceQuerying",
    "OptimizationHints", "PaintHolding", "PreconnectToSearch", "ThirdPartyStoragePartitioning",
)  # fmt: skip
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", f"--disable-features={','.join(WITHOUT)}",
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
        # Playwright's own loop runs in this thread, which Django takes for an
        # asynchronous caller of its ORM.
        before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        chromium = launched(playwright)
        yield chromium
        chromium.close()
        if before is None:
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@cache
def encoded() -> str:
    """The password as it is stored: made once, since that takes most of a second."""
    from django.contrib.auth.hashers import make_password

    return make_password(PASSWORD)


class Servers:
    """Web server and publisher, which all tests share. `folder` holds the data of one test; the
    next one begins with an empty folder."""

    def __init__(self, base: Path) -> None:
        self.folder, self.log = base / "var", base / "servers.log"
        # Test runs side by side on one machine look for a port in different places.
        reservation = next_free_port(8900 + os.getpid() % 400)
        self.port = reservation.port
        reservation.release()
        self._commands = {"web": web_command(self.port), "publisher": (sys.executable, "manage.py", "publish")}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._environment: dict[str, str] = {}

    def empty_folder(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(exist_ok=True)
        # Shown when the wait of a test fails.
        (self.folder / self.log.name).symlink_to(self.log)

    def start(self, world: World) -> None:
        """Those that do not run start, in the environment of the test's world; in another one
        than before all start again."""
        environment = {name: value for name, value in world.environment().items() if name != "PYTEST_CURRENT_TEST"}
        if environment != self._environment:
            self.stop()
            self._environment = environment
        for name, command in self._commands.items():
            if name not in self._running:
                self._running[name] = self._started(command)
        world.wait(lambda: healthy(self.port), 60, "the web server answers")

    def _started(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, name: str) -> None:
        child = self._running.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()

    def stop(self) -> None:
        for name in list(self._running):
            self.kill(name)

    def ended(self) -> list[str]:
        """Those that ended without being killed; they start again with the next test."""
        found = [name for name, child in self._running.items() if child.poll() is not None]
        for name in found:
            self.kill(name)
        return found


class Site:
    """A world (one planar feed, two queries), the processes that serve it,
    and one page of one reader."""

    def __init__(self, world: World, servers: Servers, browser: Browser) -> None:
        self.world, self.servers = world, servers
        self.address = f"http://127.0.0.1:{servers.port}"
        self.faults: list[str] = []
        self.context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
        self.context.set_default_timeout(TIMEOUT_MS)
        self.page: Page = self.context.new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _heard(self, message: Any) -> None:
        # A server that is stopped on purpose is reported in the console too; so is one that is too
        # busy for a trial, which is repeated.
        expected = ("ERR_CONNECTION", "WebSocket connection", "status of 503")
        if message.type == "error" and not any(text in message.text for text in expected):
            self.faults.append(f"{message.text} {message.location.get('url', '')}".strip())

    def start_web(self) -> None:
        self.servers.start(self.world)

    def kill_web(self) -> None:
        self.servers.kill("web")

    def resize(self, width: int, height: int = 844) -> None:
        """Waits until the page is laid out anew: until then its boxes are those of the old size."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")

    def log_in(self) -> None:
        """With a session that is made here: the form is used by tests of logging in. Opens no
        page."""
        from django.conf import settings
        from django.test import Client

        client = Client()
        client.force_login(self.world.feed.owner)
        name = settings.SESSION_COOKIE_NAME
        self.context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": self.address}])

    def close(self) -> None:
        self.context.close()


@pytest.fixture(scope="session")
def servers(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    found = Servers(tmp_path_factory.mktemp("servers"))
    yield found
    found.stop()


@pytest.fixture
def site(transactional_db: None, servers: Servers, settings: Any, redis_url: str, browser: Browser) -> Iterator[Site]:
    """Web server and publisher run; no job yet."""
    from tests.crash.world import World
    from webapp.accounts.models import Membership, Role, Team

    before = os.environ["VEDETTE_VAR"]
    for name in ("VAR", "VEDETTE_LOG_STORE", "EVENT_LOG_ROOT", "CHECKPOINT_ROOT"):
        setattr(settings, name, getattr(settings, name))
    servers.empty_folder()
    world = World(servers.folder, redis_url=redis_url)
    reader = world.feed.owner
    reader.password = encoded()
    reader.save()
    # Users in no team can create nothing.
    Membership.objects.create(user=reader, team=Team.objects.create(name="watch"), role=Role.OPERATOR)
    made = Site(world, servers, browser)
    try:
        made.start_web()
        yield made
        assert servers.ended() == []
    finally:
        made.close()
        world.close()
        if made.faults:
            print(*servers.log.read_text().splitlines()[-200:], sep="\n")
        os.environ["VEDETTE_VAR"] = before
