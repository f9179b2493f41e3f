"""Drawing and frame times of the live page in Chromium: python measure.py BASE_URL [SECONDS].

The server is `CARS=10000 REGIONS=5000 INTERVALS=50000 RATE=200 node dev/mock_server.mjs PORT`. Three figures for each
situation: what one drawing of each canvas takes (its own clock, milliseconds), the distances between animation frames, and
the share of a processor that the page's main thread used, which a busy machine does not distort.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

from chromium import ARGS
from playwright.sync_api import CDPSession, Page, sync_playwright

LAYERS = {"regions": "canvas[data-layer=regions]", "entities": "canvas[data-layer=entities]", "timeline": ".timeline-canvas"}
WATCH = """(selectors) => {
  window.gaps = []; window.draws = Object.fromEntries(Object.keys(selectors).map((name) => [name, []]));
  for (const [name, selector] of Object.entries(selectors)) new MutationObserver((all) => { for (const one of all) window.draws[name].push(Number(one.target.dataset.drawMs)); }).observe(document.querySelector(selector), { attributes: true, attributeFilter: ["data-draw-ms"] });
  let last = performance.now();
  const step = (now) => { window.gaps.push(now - last); last = now; requestAnimationFrame(step); };
  requestAnimationFrame(step);
}"""
TAKE = """() => { const found = { gaps: window.gaps.slice(1), draws: structuredClone(window.draws) }; window.gaps.length = 0; for (const list of Object.values(window.draws)) list.length = 0; return found; }"""


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


def processor_s(session: CDPSession) -> float:
    """Processor seconds of the main thread's tasks so far."""
    metrics = {item["name"]: item["value"] for item in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


def situation(page: Page, session: CDPSession, name: str, seconds: float, act: Callable[[int], object] | None = None) -> None:
    page.evaluate(TAKE)
    began, used = time.monotonic(), processor_s(session)
    step = 0
    while time.monotonic() - began < seconds:
        if act is not None:
            act(step)
        page.wait_for_timeout(30 if act is not None else 250)
        step += 1
    spent, took = processor_s(session) - used, time.monotonic() - began
    found = page.evaluate(TAKE)
    print(
        f"{name}: frames p50 {statistics.median(found['gaps']):.1f} ms, p95 {percentile(found['gaps'], 0.95):.1f} ms; main thread {spent / took:.0%} of a processor"
    )
    for layer, values in found["draws"].items():
        line = (
            f"{len(values):4d} drawings, least {min(values):.1f}, median {statistics.median(values):.1f}, p95 {percentile(values, 0.95):.1f} ms"
            if values
            else "not drawn"
        )
        print(f"    {layer:9s} {line}", flush=True)


def main(address: str, seconds: float) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(address)
        page.wait_for_function(
            "document.querySelectorAll('.query-count').length > 0 && document.querySelector('.state-live, .state-behind') !== null"
        )
        page.wait_for_timeout(5000)
        page.evaluate(WATCH, LAYERS)
        situation(page, session, "live, nobody touches it", seconds)
        box, lanes = page.locator(".live-map").bounding_box(), page.locator(".timeline-canvas").bounding_box()
        assert box is not None and lanes is not None
        page.mouse.move(box["x"] + 500, box["y"] + 250)
        page.mouse.down()
        situation(page, session, "dragging the map", seconds, lambda n: page.mouse.move(box["x"] + 500 + (n % 20) * 8, box["y"] + 250 + n % 40))
        page.mouse.up()
        page.mouse.move(box["x"] + 500, box["y"] + 250)
        situation(
            page, session, "pointing at the map", seconds, lambda n: page.mouse.move(box["x"] + 300 + (n * 7) % 400, box["y"] + 100 + (n * 3) % 200)
        )
        situation(page, session, "zooming the map", seconds, lambda n: page.mouse.wheel(0, 120 if n // 20 % 2 else -120) if n % 10 == 0 else None)
        page.mouse.move(lanes["x"] + 700, lanes["y"] + 120)
        situation(page, session, "zooming the timeline", seconds, lambda n: page.mouse.wheel(0, 60 if n % 8 < 4 else -60))
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 6.0)
