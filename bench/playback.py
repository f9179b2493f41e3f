"""Playback of a day of the demo city, measured in a browser: `python -m bench.playback [--hours 24] [--jumps 40] [--seconds 20]
[--keep FOLDER]`.

A server of its own with an empty database gets the city's 2,000 cars as history (no job runs) and a million answers. That takes 20 minutes for a day:
with `--keep` the folder stays, a run that was interrupted goes on where it was, and the next one begins with measuring. Then headless Chromium, which
draws in software, opens the live page and

    jumps   goes to instants all over the day by the field for the time: from Enter until the map shows everybody there
    plays   at 60x from some of those instants: the distance between frames (requestAnimationFrame), and between pictures of the map

Prints p50, p95 and the greatest of each. Everything runs on one machine: the server takes processor time from the browser.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

BEGIN = 1_763_700_000_000
HOUR, CHUNK = 3_600_000, 300_000
ANSWERS_PER_HOUR = 40_000
PASSWORD = "plays the whole day back"
PORT = 8790
STORED = """
INSERT INTO detections_detection (feed_id, key, query_id, version, kind, entities, start, "end", evidence, weight, backfill, seq, detected_at)
SELECT %s, decode(md5(i::text), 'hex'), (%s::bigint[])[1 + i %% %s], 1, 'in', ARRAY['car-' || i %% 2000],
  %s + i * %s, %s + i * %s, NULL, 1, false, 1, 1
FROM generate_series(%s, %s) AS i
ON CONFLICT DO NOTHING
"""
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
    parser.add_argument("--jumps", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=20, help="how long each of four playbacks is watched")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the history is made, and found again by the next run")
    options = parser.parse_args(arguments)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="vedette-playback-"))
    folder.mkdir(parents=True, exist_ok=True)
    # PostgreSQL runs as another user where this one is root.
    folder.chmod(0o711)
    try:
        with _database(folder):
            end = _history(options.hours)
            with _server(folder) as url:
                _measure(url, end, options)
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
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


def _history(hours: float) -> int:
    """Fills the city's log and its answers, or goes on filling them; the greatest time."""
    from django.conf import settings

    from engine.model.events import check_rows
    from engine.sources.eventlog import EventLog
    from webapp.demo.seed import seed_feed, seed_users
    from webapp.demo.simulation.scenarios import read_scenario
    from webapp.feeds.heads import feed_head_ensure
    from webapp.jobs.models import FeedHead

    began = time.monotonic()
    feed = seed_feed("city", seed_users(PASSWORD, PASSWORD + "!"))
    log, own, world = EventLog(settings.EVENT_LOG_ROOT, feed.name), feed.engine_feed(), read_scenario("city").world
    end, (_, reached) = BEGIN + round(hours * HOUR), log.end
    for start in range(BEGIN, end, CHUNK):
        if reached is None or reached < start:
            good, _dead = check_rows(world.rows(start, min(end, start + CHUNK)), own)
            log.append(good)
        if (start - BEGIN) % HOUR == HOUR - CHUNK:
            log.compact(log.end[0] - 1)
    next_seq, greatest = log.end
    log.compact(next_seq - 1)
    feed_head_ensure(feed)
    FeedHead.objects.filter(feed=feed).update(last_seq=next_seq - 1, max_t=greatest, watermark=greatest)
    answers = _answers(feed.pk, hours)
    print(f"{next_seq:,} rows of {hours:g} hours and {answers:,} answers, made in {time.monotonic() - began:.0f} s", flush=True)
    return int(greatest or BEGIN)


def _answers(feed: int, hours: float) -> int:
    """As many stored as the queries of so long a history have; how many."""
    from django.db import connection

    from webapp.detections.partitions import partitions_ensure, span_of
    from webapp.queries.models import Query

    queries = list(Query.objects.filter(feed_id=feed).order_by("pk").values_list("pk", flat=True))
    answers, every = round(hours * ANSWERS_PER_HOUR), HOUR // ANSWERS_PER_HOUR
    partitions_ensure({span_of(t) for t in range(BEGIN, BEGIN + round((hours + 1) * HOUR), HOUR)})
    with connection.cursor() as cursor:
        # An hour at a time: no statement may take longer than thirty seconds.
        for first in range(0, answers, ANSWERS_PER_HOUR):
            last = min(answers, first + ANSWERS_PER_HOUR) - 1
            cursor.execute(STORED, [feed, queries, len(queries), BEGIN, every, BEGIN, every, first, last])
    return answers


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(PORT), "webapp.config.asgi:application"]
    with (folder / "web.log").open("wb") as log:
        web = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{PORT}"
    try:
        for _ in range(300):
            try:
                with urllib.request.urlopen(url + "/healthz", timeout=2):
                    break
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        yield url
    finally:
        web.terminate()
        web.wait()


def _measure(url: str, end: int, options: argparse.Namespace) -> None:
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
        chance = random.Random(1)
        instants = [chance.randrange(BEGIN, end - 10 * 60_000) for _ in range(options.jumps + 1)]
        page.evaluate(JUMP, _written(instants[0]))
        jumps: list[list[float]] = [page.evaluate(JUMP, _written(t)) for t in instants[1:]]
        print(f"load of the machine: {os.getloadavg()[0]:.1f}", flush=True)
        for i, part in enumerate(("jump: from Enter to the map", "  to the request", "  server", "  transport", "  parsed and drawn")):
            _tell(part, [jump[i] for jump in jumps], limit=None if i else 300)
        _play(page, instants[-4:], options.seconds)
        browser.close()


def _play(page: Page, instants: list[int], seconds: float) -> None:
    frames: list[float] = []
    pictures: list[float] = []
    page.get_by_label("Speed of playback").select_option("60")
    page.evaluate(WATCH)
    for t in instants:
        page.evaluate(JUMP, _written(t))
        page.locator(".timeline-canvas").focus()
        page.keyboard.press("Space")
        page.locator(".state-past", has_text="Playing 60×").wait_for()
        page.evaluate(TAKE)
        page.wait_for_timeout(seconds * 1000)
        found: dict[str, Any] = page.evaluate(TAKE)
        frames += found["frames"]
        pictures += found["pictures"]
        page.keyboard.press("Space")
        page.locator(".state-past", has_text="Paused").wait_for()
    for name, gaps in (("frames at 60x", frames), ("pictures of the map at 60x", pictures)):
        _tell(name, gaps)
        print(
            f"    {1000 * len(gaps) / sum(gaps):.1f} a second; {sum(gap > 1000 / 30 for gap in gaps) / len(gaps):.1%} longer than 33 ms", flush=True
        )


def _written(t: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(t / 1000))


def _tell(name: str, values: list[float], limit: float | None = None) -> None:
    ordered = sorted(values)
    at = lambda share: ordered[min(len(ordered) - 1, int(len(ordered) * share))]  # noqa: E731
    over = "" if limit is None else f"; {sum(value > limit for value in values)} longer than {limit:g} ms"
    print(f"{name}: {len(values)} times, p50 {at(0.5):.0f} ms, p95 {at(0.95):.0f} ms, greatest {ordered[-1]:.0f} ms{over}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
