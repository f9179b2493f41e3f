/** The bar between map and timeline: dragged, or moved with the arrow keys. */

import { t } from "../lib/texts";
import { h } from "../lib/dom";
import { setTimelineHeight, timelineHeight } from "../lib/preferences";

const LEAST_PX = 90;
const LEAST_MAP_PX = 140;
/** Of the grid's height, if the reader chose none. */
const USUAL_SHARE = 0.36;

/** Sets `--timeline` (CSS pixels) on `grid`. */
export function splitter(grid: HTMLElement): HTMLElement {
  const bar = h("div", {
    class: "splitter",
    role: "separator",
    tabindex: 0,
    "aria-orientation": "horizontal",
    "aria-label": t("Height of the timeline"),
  });
  const set = (px: number): void => bar.setAttribute("aria-valuenow", String(setHeight(grid, px)));
  const current = (): number => (grid.lastElementChild as HTMLElement).offsetHeight;
  requestAnimationFrame(() => set(timelineHeight() ?? grid.clientHeight * USUAL_SHARE));
  bar.addEventListener("pointerdown", (event) => {
    bar.setPointerCapture(event.pointerId);
    const [y, height] = [event.clientY, current()];
    const move = (moved: PointerEvent): void => set(height - (moved.clientY - y));
    bar.addEventListener("pointermove", move);
    bar.addEventListener(
      "pointerup",
      () => {
        bar.removeEventListener("pointermove", move);
        setTimelineHeight(current());
      },
      { once: true },
    );
  });
  bar.addEventListener("keydown", (event) => {
    const by = event.key === "ArrowUp" ? 24 : event.key === "ArrowDown" ? -24 : 0;
    if (by === 0) return;
    event.preventDefault();
    set(current() + by);
    setTimelineHeight(current());
  });
  return bar;
}

/** Gives the timeline this share of the grid's height, unless the reader chose a height. */
export function proposeShare(grid: HTMLElement, share: number): void {
  if (timelineHeight() === null) setHeight(grid, grid.clientHeight * share);
}

function setHeight(grid: HTMLElement, px: number): number {
  const most = Math.max(LEAST_PX, grid.clientHeight - LEAST_MAP_PX);
  const height = Math.round(Math.max(LEAST_PX, Math.min(most, px)));
  grid.style.setProperty("--timeline", `${height}px`);
  return height;
}
