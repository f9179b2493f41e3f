"""The desk in a real browser with many open alerts while more arrive.

    . var/environment
    python -m bench.desk --password ... [--url http://127.0.0.1:8000] [--user analyst]
        [--alerts 100000] [--rate 50] [--seconds 120]

Makes a feed with a query and `--alerts` open alerts, straight in the database of the running
system, and removes them at the end. Then, in Chromium:

    usable navigation -> rows shown and a turn of the main thread; the median of five loads tasks
    tasks of the main thread over 50 ms of wall-clock time, while loading and while alerts come
    busiest the most processor time that one task took, independent of other work control the same
    of an empty page that counts to five million five times a second moved how often another row
    moved under a resting pointer, or the row under it moved

For the first half of the time the pointer rests on a row, so that new rows wait; in the second half
it is elsewhere, rows come in and the list scrolls.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import threading
import time
from datetime import timedelta
from typing import Any

WATCH = """
  window.tasks = [];
  window.usable = null;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) window.tasks.push([one.startTime, one.duration]);
  }).observe({ type: 'longtask', buffered: true });
  const looked = new MutationObserver(() => {
    if (document.querySelector('tr[data-alert]') === null) return;
    looked.disconnect();
    // After the frame with the rows, and after what else had to be done by then.
    requestAnimationFrame(() => setTimeout(() => { window.usable = performance.now(); }, 0));
  });
  looked.observe(document, { childList: true, subtree: true });
"""
CONTROL = """
  window.tasks = [];
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) window.tasks.push([one.startTime, one.duration]);
  }).observe({ type: 'longtask' });
  setInterval(() => { let sum = 0; for (let i = 0; i < 5e6; i++) sum += i % 7; window.sum = sum; }, 200);
"""
TASK, TRACED = "RunTask", "disabled-by-default-devtools.timeline"
REST = """([x, y]) => {
  const under = () => document.elementFromPoint(x, y)?.closest('tr[data-alert]') ?? null;
  const first = under();
  window.moved = 0;
  window.frames = [];
  let before = { row: first?.dataset.alert, top: first?.getBoundingClientRect().top };
  let last = performance.now();
  window.watching = true;
  const look = (now) => {
    window.frames.push(now - last);
    last = now;
    const row = under();
    const here = { row: row?.dataset.alert, top: row?.getBoundingClientRect().top };
    if (here.row !== before.row || here.top !== before.top) window.moved += 1;
    before = here;
    if (window.watching) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


class World:
    """A feed, a query and its alerts in the running system's database."""

    def __init__(self, user: str, severities: tuple[str, ...] = ("low", "high", "critical", "info")) -> None:
        import django

        django.setup()
        from webapp.accounts.models import User
        from webapp.feeds.heads import feed_head_ensure
        from webapp.feeds.services import feed_create
        from webapp.queries.services import query_register

        owner = User.objects.get(username=user)
        self.owner = owner
        self.feed = feed_create(owner=owner, name=f"bench-desk-{time.time():.0f}", title="Desk", crs="planar", time="ms", lateness=1000)
        feed_head_ensure(self.feed)
        region = {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]]]}
        document = {"family": "border", "version": 1, "region": region}
        self.query = query_register(owner=owner, feed=self.feed, name="desk bench", specification=document, alert_kinds=["in"])
        self.severities, self.count = severities, 0

    def open(self, count: int, *, is_pushed: bool, is_planned: bool = True) -> None:
        """More alerts; `is_pushed`: to open pages, as a batch does; `is_planned`: not sent to
        channels."""
        from django.db import transaction
        from django.utils import timezone

        from webapp.alerts.models import Alert
        from webapp.alerts.rows import alert_rows
        from webapp.detections.services import outbox_append

        now = timezone.now()
        with transaction.atomic():
            made = Alert.objects.bulk_create(
                Alert(
                    query=self.query,
                    feed=self.feed,
                    detection_key=(self.count + n).to_bytes(16, "big"),
                    kind="in",
                    entities=[f"walker {self.count + n}"],
                    start=self.count + n,
                    severity=self.severities[n % len(self.severities)],
                    opened_at=now - timedelta(milliseconds=count - n),
                    planned_at=now if is_planned else None,
                )
                for n in range(count)
            )
            if is_pushed:
                outbox_append(feed_id=self.feed.pk, alerts=alert_rows(made))
        self.count += count

    def copy(self, count: int) -> None:
        """This many more like the first, of all severities, a millisecond apart."""
        from django.db import connection

        from webapp.alerts.models import Alert

        severities = ", ".join(f"'{one}'" for one in self.severities)
        made = {
            "detection_key": "decode(lpad(to_hex(n), 32, '0'), 'hex')",
            "entities": "ARRAY['walker ' || n]",
            "start": "n",
            "severity": f"(ARRAY[{severities}])[n %% {len(self.severities)} + 1]",
            "opened_at": "opened_at + n * interval '1 ms'",
        }
        columns = [field.column for field in Alert._meta.concrete_fields if field.column not in ("id", "rank")]
        values = ", ".join(made.get(column, f'"{column}"') for column in columns)
        names = ", ".join(f'"{column}"' for column in columns)
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO alerts_alert ({names}) SELECT {values} FROM alerts_alert, generate_series(%s, %s) AS n WHERE feed_id = %s",
                [self.count, self.count + count - 1, self.feed.pk],
            )
        self.count += count

    def remove(self) -> None:
        from webapp.alerts.models import Alert
        from webapp.detections.removal import feed_delete
        from webapp.queries.services import query_remove

        Alert.objects.filter(feed=self.feed).delete()
        query_remove(query=self.query)
        feed_delete(feed=self.feed, user=self.owner)


def measure(given: argparse.Namespace) -> None:
    world = World(given.user)
    try:
        world.open(1, is_pushed=False)
        world.copy(given.alerts - 1)
        _browse(given, world)
    finally:
        world.remove()


def _browse(given: argparse.Namespace, world: World) -> None:
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import ARGUMENTS, PROGRAMS

    program = next(found for found in map(shutil.which, PROGRAMS) if found)
    # Playwright's event loop runs in this thread, which Django takes for an
    # asynchronous caller of its ORM.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.set_default_timeout(120_000)
        page.goto(f"{given.url}/login/")
        page.fill("#username", given.user)
        page.fill("#password", given.password)
        page.click("button[type=submit]")
        page.wait_for_url(f"{given.url}/**")
        _trace(browser, page)
        _say("control, 20 s", {**_control(page), **_busiest(browser)})
        page.add_init_script(WATCH)
        usable, loading = [], []
        _trace(browser, page)
        for _ in range(5):
            page.goto(f"{given.url}/alerts/")
            page.wait_for_function("() => window.usable !== null")
            page.wait_for_timeout(1_500)
            usable.append(page.evaluate("window.usable"))
            loading += page.evaluate("window.tasks")
        busiest = _busiest(browser)
        _say("usable, ms", {"middle": sorted(usable)[2], "slowest": max(usable)})
        _say("five loads", {**_tasks(loading), **busiest})
        for what, is_at_rest in (("while they come, pointer at rest", True), ("while they come, pointer away, scrolling", False)):
            _trace(browser, page)
            found = _while(given, world, page, is_at_rest=is_at_rest)
            _say(what, {**found, **_busiest(browser)})
        page.evaluate("window.heap = performance.memory?.usedJSHeapSize ?? 0")
        _say("at the end", {"heap, MB": page.evaluate("window.heap") / 1e6, "load": os.getloadavg()[0], "cores": os.cpu_count() or 0})
        browser.close()


def _control(page: Any) -> dict[str, float]:
    page.goto("about:blank")
    page.evaluate(CONTROL)
    page.wait_for_timeout(20_000)
    return _tasks(page.evaluate("window.tasks"))


def _trace(browser: Any, page: Any) -> None:
    browser.start_tracing(page=page, categories=[TRACED])


def _busiest(browser: Any) -> dict[str, float]:
    """Figures of the tasks of pages' main threads since `_trace`; a task's `tdur` is its
    processor time in microseconds."""
    events = json.loads(browser.stop_tracing())["traceEvents"]
    mains = {(one["pid"], one["tid"]) for one in events if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"}
    took = [one.get("tdur", 0) / 1000 for one in events if one["name"] == TASK and (one["pid"], one["tid"]) in mains]
    return {"busiest, ms": max(took, default=0.0), "over 50 ms of processor time": sum(ms > 50 for ms in took)}


def _while(given: argparse.Namespace, world: World, page: Any, *, is_at_rest: bool) -> dict[str, float]:
    """Half of the time with this many alerts a second."""
    page.evaluate("window.tasks.length = 0")
    row = page.locator("tr[data-alert]").nth(3).bounding_box()
    x, y = (row["x"] + 300, row["y"] + row["height"] / 2) if is_at_rest else (3, 3)
    page.mouse.move(x, y)
    page.wait_for_timeout(300)
    page.evaluate(REST, [x, y])
    end = threading.Event()
    sent = list[int]()
    sender = threading.Thread(target=_send, args=(given.rate, world, end, sent))
    sender.start()
    until, n = time.monotonic() + given.seconds / 2, 0
    while time.monotonic() < until:
        if not is_at_rest:
            n += 1
            page.locator(".desk-scroll").evaluate("(one, top) => one.scrollTo(0, top)", (n % 7) * 600)
        page.wait_for_timeout(500)
    end.set()
    sender.join()
    page.evaluate("window.watching = false")
    frames = sorted(page.evaluate("window.frames"))
    moved = {"moved": page.evaluate("window.moved")} if is_at_rest else {}
    rates = {"alerts": sum(sent), "frames p95, ms": frames[int(0.95 * len(frames))], "greatest": frames[-1]}
    return {**_tasks(page.evaluate("window.tasks")), **moved, **rates}


def _send(rate: int, world: World, end: threading.Event, sent: list[int]) -> None:
    """As batches come, five in a second."""
    from django.db import connection

    following = time.monotonic()
    while not end.is_set():
        world.open(rate // 5, is_pushed=True)
        sent.append(rate // 5)
        following += 0.2
        end.wait(max(0.0, following - time.monotonic()))
    connection.close()


def _tasks(found: list[list[float]]) -> dict[str, float]:
    return {"tasks": len(found), "longest, ms": max((duration for _, duration in found), default=0.0)}


def _say(what: str, figures: dict[str, float]) -> None:
    print(f"{what:44}" + "  ".join(f"{name} {value:,.1f}" for name, value in figures.items()), flush=True)
    print(json.dumps({what: figures}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="analyst")
    parser.add_argument("--password", required=True)
    parser.add_argument("--alerts", type=int, default=100_000)
    parser.add_argument("--rate", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120)
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
