/**
 * The number of open alerts by severity over time: stacked areas, the most severe at the bottom.
 */

import { t } from "../lib/texts";
import { SEVERITIES, type Severity } from "../lib/shapes";
import { h, replace, svg } from "../lib/dom";
import { formatDate, formatMoment, formatNumber, type Zone } from "../lib/time";

/** CSS pixels, like all lengths here. */
const HEIGHT = 180;
const LABEL_PX = 68;
/** If the labels at both ends would overlap, dates without times are shown. */
const NARROW = 440;
/** The space below the areas, for the labels at both ends. */
const FOOT_PX = 26;

type Open = Readonly<Record<Severity, readonly number[]>>;

/** Redrawn for each width: in a scaled picture texts would be too small to read on a phone. */
export function severityLines(times: readonly number[], open: Open, zone: Zone): HTMLElement {
  const place = h("div", { class: "severity-lines" });
  new ResizeObserver(() => replace(place, picture(place.clientWidth, times, open, zone))).observe(place);
  return place;
}

function picture(width: number, times: readonly number[], open: Open, zone: Zone): SVGSVGElement {
  const order = [...SEVERITIES].reverse();
  const sums = times.map((_, i) => order.reduce((sum, one) => sum + (open[one][i] ?? 0), 0));
  const most = Math.max(1, ...sums);
  const x = (i: number): number => LABEL_PX + (i * (width - LABEL_PX)) / Math.max(1, times.length - 1);
  const y = (count: number): number => HEIGHT - (count / most) * (HEIGHT - 16);
  const below = times.map(() => 0);
  const areas = order.map((one) => {
    const from = [...below];
    times.forEach((_, i) => (below[i] = from[i]! + (open[one][i] ?? 0)));
    const edge = below.map((count, i) => `${x(i)},${y(count)}`);
    const back = from.map((count, i) => `${x(i)},${y(count)}`).reverse();
    return svg("polygon", { class: `severity-area severity-${one}`, points: [...edge, ...back].join(" ") });
  });
  const labels = [most, 0].map((count) => svg("text", { x: LABEL_PX - 6, y: y(count) + 4, "text-anchor": "end" }, formatNumber(count)));
  const ends = [[times[0], LABEL_PX, "start"] as const, [times.at(-1), width, "end"] as const].flatMap(([at, end, anchor]) =>
    at === undefined
      ? []
      : [
          svg(
            "text",
            { x: end, y: HEIGHT + 18, "text-anchor": anchor },
            width < NARROW ? formatDate(at, zone) : formatMoment(at, "ms", zone),
          ),
        ],
  );
  return svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${HEIGHT + FOOT_PX}`,
      role: "img",
      "aria-label": t("Open alerts over time, at most {most}", { most: formatNumber(most) }),
    },
    svg("line", { x1: LABEL_PX, x2: width, y1: HEIGHT, y2: HEIGHT }),
    ...areas,
    ...labels,
    ...ends,
  );
}
