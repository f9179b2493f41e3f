"""Frame times of the canvases: python measure.py BASE_URL (a mock server with CARS=10000 REGIONS=5000 INTERVALS=50000)."""

import statistics
import sys

from playwright.sync_api import Page, sync_playwright

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LAYERS = {"regions": "canvas[data-layer=regions]", "entities": "canvas[data-layer=entities]", "timeline": ".timeline-canvas"}
FRAMES = """async (count) => {
  const times = [];
  let last = await new Promise(requestAnimationFrame);
  for (let i = 0; i < count; i++) { const now = await new Promise(requestAnimationFrame); times.push(now - last); last = now; }
  return times;
}"""


def drawn(page: Page, act: object, times: int = 12) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in LAYERS}
    for step in range(times):
        act(step)
        page.wait_for_timeout(60)
        for name, selector in LAYERS.items():
            found[name].append(float(page.locator(selector).get_attribute("data-draw-ms") or "nan"))
    return found


def tell(what: str, found: dict[str, list[float]]) -> None:
    print(what, {name: f"median {statistics.median(values):.1f} ms, worst {max(values):.1f} ms" for name, values in found.items()}, flush=True)


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGS)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(sys.argv[1])
    page.wait_for_timeout(8000)
    frames = page.evaluate(FRAMES, 120)
    print(f"live, nobody touches it: median frame {statistics.median(frames):.1f} ms, 95 % below {sorted(frames)[113]:.1f} ms")
    box = page.locator(".live-map").bounding_box()
    page.mouse.move(box["x"] + 500, box["y"] + 250)
    page.mouse.down()
    tell("dragging the map", drawn(page, lambda n: page.mouse.move(box["x"] + 500 + (n % 10) * 8, box["y"] + 250 + n)))
    page.mouse.up()
    lanes = page.locator(".timeline-canvas").bounding_box()
    page.mouse.move(lanes["x"] + 700, lanes["y"] + 120)
    tell("zooming the timeline", drawn(page, lambda n: page.mouse.wheel(0, 60 if n % 8 < 4 else -60)))
    browser.close()
