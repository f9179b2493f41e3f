/** A histogram as bars, labelled with the first and last edge. */

import { h, svg } from "../lib/dom";
import { formatNumber } from "../lib/time";
import { t } from "../lib/texts";

const [WIDTH, HEIGHT, GAP] = [480, 110, 2];

export interface Bars {
  /** What is counted: the accessible name. */
  title: string;
  counts: readonly number[];
  /** Labels below the first and the last bar. */
  ends: [string, string];
}

export function bars({ title, counts, ends }: Bars): HTMLElement {
  const most = Math.max(1, ...counts);
  const step = WIDTH / Math.max(1, counts.length);
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      class: "bars",
      "aria-label": t("{title}: at most {most} in one bar", { title, most: formatNumber(most) }),
    },
    ...counts.map((count, i) =>
      svg(
        "rect",
        {
          x: (i * step).toFixed(1),
          width: Math.max(1, step - GAP).toFixed(1),
          y: (HEIGHT - (count / most) * HEIGHT).toFixed(1),
          height: ((count / most) * HEIGHT).toFixed(1),
        },
        svg("title", {}, formatNumber(count)),
      ),
    ),
  );
  return h(
    "figure",
    { class: "bars-figure" },
    h(
      "figcaption",
      { class: "row spread small" },
      h("strong", {}, title),
      h("span", { class: "faint num" }, t("at most {most}", { most: formatNumber(most) })),
    ),
    picture,
    h("div", { class: "row spread small faint num" }, h("span", {}, ends[0]), h("span", {}, ends[1])),
  );
}
