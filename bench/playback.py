"""A day of the demo city in the past: jumps, playback and counts, measured in a browser:
`python -m bench.playback`.

A separate server gets the city's 2,000 cars of 24 hours and what the demo's queries answer, with
their alerts (bench/city_day.py: no job runs then). That takes most of the time. It stays in
`--folder` (var/playback, 4 GB): the next run begins with measuring, and one that was interrupted
goes on where it was. Then headless Chromium, which draws in software, opens the live page and

    jumps   goes to instants all over the day: from Enter until the map shows everybody there
    plays   both ways at 60x and 600x: the time between frames, and between pictures of the map

and a client asks for the counts of answers that the timeline shows of 1, 6 and 24 hours, and for
the answers that hold at an instant.

Prints p50, p95 and the greatest of each, and the server's processor time for one. Everything runs
on one machine: the server takes processor time from the browser.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from bench.city_day import HOUR, Day, city_day
from bench.latency import Client
from webapp.platform.folders import ROOT
from webapp.platform.health import healthy
from webapp.platform.web_server import web_command

if TYPE_CHECKING:
    from playwright.sync_api import Page

PASSWORD = "plays the whole day back"
STARTED_S = 300
JUMP_MS, COUNTS_MS = 300, 200
"""The target, counted when it is missed."""
JUMP = """async (text) => {
  const field = document.querySelector(".when");
  const before = document.querySelector("[data-shown]")?.dataset.shown;
  field.focus();
  field.value = text;
  const began = performance.now();
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  for (;;) {
    await new Promise(requestAnimationFrame);
    const shown = document.querySelector("[data-shown]")?.dataset.shown;
    if (shown !== before) {
      const asked = performance.getEntriesByType("resource").filter((one) => one.name.includes("/movements") && one.startTime >= began);
      const [first] = asked;
      const ended = performance.now();
      performance.clearResourceTimings();
      if (first === undefined) return [ended - began, 0, 0, 0, 0];
      const { startTime, responseStart, responseEnd } = first;
      return [ended - began, startTime - began, responseStart - startTime, responseEnd - responseStart, ended - responseEnd];
    }
    if (performance.now() - began > 20000) throw new Error(`nothing is shown after ${text}`);
  }
}"""
WATCH = """() => {
  window.frames_ = []; window.pictures = [];
  let last = performance.now(), shown = null;
  const step = (now) => {
    window.frames_.push(now - last); last = now;
    if (window.isWatching !== false) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
  let before = performance.now();
  new MutationObserver(() => { const now = performance.now(); window.pictures.push(now - before); before = now; })
    .observe(document.querySelector("[data-shown]"), { attributes: true, attributeFilter: ["data-shown"] });
}"""
TAKE = """() => {
  const found = { frames: window.frames_.slice(1), pictures: window.pictures.slice(1) };
  window.frames_ = []; window.pictures = [];
  return found;
}"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.playback", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=24, help="length of the history")
    parser.add_argument("--jumps", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1, help="of the instants at which playback starts")
    parser.add_argument("--seconds", type=float, default=10, help="how long each of two playbacks at each speed is watched")
    parser.add_argument("--asked", type=int, default=20, help="number of requests for the counts of each length of time")
    parser.add_argument("--port", type=int, default=8790, help="of the server that is started")
    parser.add_argument("--folder", type=Path, default=ROOT / "var" / "playback", help="folder of the history, which the next run uses again")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # PostgreSQL runs as another user where this one is root.
    folder.chmod(0o711)
    with _database(folder):
        day = city_day(folder, options.hours, PASSWORD)
        with _server(folder, options.port) as (url, server):
            print(f"load of the machine: {os.getloadavg()[0]:.1f}", flush=True)
            _ask(url, server, day, options)
            _watch(url, server, day, options)
    return 0


@contextmanager
def _database(folder: Path) -> Iterator[None]:
    """An empty database with all tables, and Django set up for it."""
    from webapp.platform.postgres import READER, EmbeddedPostgres

    with EmbeddedPostgres(folder / "postgres").running() as url:
        os.environ.update(
            DATABASE_URL=url,
            DATABASE_OWNER_URL=EmbeddedPostgres(folder / "postgres").owner_url,
            DATABASE_READER_ROLE=READER,
            REDIS_URL="",
            VEDETTE_VAR=str(folder),
            VEDETTE_SECRETS_KEYS="dGVzdHMgZW5jcnlwdCB3aXRoIHRoaXMgYWxvbmUhISE=",
            SECRET_KEY="used by a measurement only",
            ALLOWED_HOSTS="127.0.0.1",
            VEDETTE_HTTPS="0",
            DJANGO_SETTINGS_MODULE="webapp.config.settings",
            # Playwright's loop runs in this thread.
            DJANGO_ALLOW_ASYNC_UNSAFE="1",
        )
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        yield


@contextmanager
def _server(folder: Path, port: int) -> Iterator[tuple[str, psutil.Process]]:
    with (folder / "web.log").open("wb") as log:
        web = subprocess.Popen(web_command(port), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + STARTED_S
        while not healthy(port):
            if time.monotonic() > until or web.poll() is not None:
                raise RuntimeError(f"the web server does not answer: see {folder / 'web.log'}")
            time.sleep(0.2)
        yield url, psutil.Process(web.pid)
    finally:
        web.terminate()
        web.wait()


@contextmanager
def _spent(server: psutil.Process, times: int) -> Iterator[None]:
    """Prints the server's processor time for one of `times` requests."""
    before = sum(server.cpu_times()[:2])
    yield
    print(f"    {1000 * (sum(server.cpu_times()[:2]) - before) / times:.0f} ms of the server's processor time for one", flush=True)


def _ask(url: str, server: psutil.Process, day: Day, options: argparse.Namespace) -> None:
    """The requests of a timeline, from a client that is no browser."""
    client = Client(url)
    client.login("analyst", PASSWORD)
    chance = random.Random(2)
    for hours in (1, 6, 24):
        length = min(hours * HOUR, day.end - day.begin)
        begins = [chance.randrange(day.begin, max(day.begin + 1, day.end - length + 1)) for _ in range(options.asked)]
        paths = [f"detections/counts?feed=city&from={begin}&to={begin + length}&buckets=400" for begin in begins]
        _report_requests(f"counts of {hours} h in 400 bins", client, server, paths, COUNTS_MS)
    instants = [chance.randrange(day.begin, day.end) for _ in range(options.asked)]
    paths = [f"detections/?feed=city&from={t}&to={t + 1}&page_size=1000" for t in instants]
    _report_requests("answers that hold at an instant", client, server, paths, None)


def _report_requests(name: str, client: Client, server: psutil.Process, paths: list[str], limit: float | None) -> None:
    def asked(path: str) -> float:
        began = time.monotonic()
        # Not parsed: in a process that has loaded Django that takes longer for a
        # megabyte than the server does.
        client.opener.open(f"{client.url}/api/v1/{path}").read()
        return 1000 * (time.monotonic() - began)

    asked(paths[0])
    with _spent(server, len(paths)):
        _report(name, [asked(path) for path in paths], limit)


def _watch(url: str, server: psutil.Process, day: Day, options: argparse.Namespace) -> None:
    from playwright.sync_api import expect, sync_playwright

    program = next(found for found in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if found)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.set_default_timeout(60_000)
        page.goto(url + "/login/")
        page.fill("#username", "analyst")
        page.fill("#password", PASSWORD)
        page.click("button[type=submit]")
        page.goto(url + "/?feed=city&span=900000")
        page.locator(".timeline-canvas").wait_for()
        expect(page.locator(".clock strong")).not_to_have_text("–", timeout=60_000)
        page.wait_for_load_state("networkidle")
        chance = random.Random(options.seed)
        instants = [chance.randrange(day.begin, day.end - 10 * 60_000) for _ in range(options.jumps + 1)]
        page.evaluate(JUMP, _written(instants[0]))
        with _spent(server, options.jumps):
            jumps: list[list[float]] = [page.evaluate(JUMP, _written(t)) for t in instants[1:]]
            for i, part in enumerate(("jump: from Enter to the map", "  to the request", "  server", "  transport", "  parsed and drawn")):
                _report(part, [jump[i] for jump in jumps], limit=None if i else JUMP_MS)
        page.evaluate(WATCH)
        for rate in (60, -60, 600, -600):
            # With room to play: 600 times as fast, ten seconds are 100 minutes.
            room = int(min(abs(rate) * options.seconds * 1500, (day.end - day.begin) / 3))
            low, high = (day.begin, day.end - room) if rate > 0 else (day.begin + room, day.end)
            _play(page, [chance.randrange(low, high) for _ in range(2)], rate, options.seconds)
        browser.close()


def _play(page: Page, instants: list[int], rate: int, seconds: float) -> None:
    frames: list[float] = []
    pictures: list[float] = []
    page.get_by_label("Speed of playback").select_option(str(abs(rate)))
    for t in instants:
        page.evaluate(JUMP, _written(t))
        page.locator(".timeline-canvas").focus()
        page.keyboard.press("Space" if rate > 0 else "b")
        page.locator(".state-past", has_text="Playing").wait_for()
        page.evaluate(TAKE)
        page.wait_for_timeout(seconds * 1000)
        found: dict[str, Any] = page.evaluate(TAKE)
        frames += found["frames"]
        pictures += found["pictures"]
        page.keyboard.press("Space")
        page.locator(".state-past", has_text="Paused").wait_for()
    for name, gaps in ((f"frames at {rate}x", frames), (f"pictures of the map at {rate}x", pictures)):
        _report(name, gaps)
        print(
            f"    {1000 * len(gaps) / sum(gaps):.1f} a second; {sum(gap > 1000 / 30 for gap in gaps) / len(gaps):.1%} longer than 33 ms", flush=True
        )


def _written(t: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(t / 1000))


def _report(name: str, values: list[float], limit: float | None = None) -> None:
    ordered = sorted(values)

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

    over = "" if limit is None else f"; {sum(value > limit for value in values)} longer than {limit:g} ms"
    print(f"{name}: {len(values)} times, p50 {at(0.5):.0f} ms, p95 {at(0.95):.0f} ms, greatest {ordered[-1]:.0f} ms{over}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
