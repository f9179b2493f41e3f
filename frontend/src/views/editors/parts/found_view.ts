/** The preview's answers of several events each: a list, and the selected one on the map. */

import type { Detection } from "../../../lib/shapes";
import { h, longName, replace } from "../../../lib/dom";
import { formatMoment, formatSpan } from "../../../lib/time";
import type { EditorContext, MapShape } from "../editor";
import { t } from "../../../lib/texts";

const SHOWN = 30;

export class FoundView {
  readonly element = h("section", { class: "form-section", hidden: true });
  private chosen: HTMLElement | null = null;

  constructor(
    private readonly context: EditorContext,
    private readonly onShow: (row: Detection | null) => void,
  ) {}

  show(rows: readonly Detection[]): void {
    this.chosen = null;
    // The preview itself reports that there is none, and what to do.
    this.element.hidden = rows.length === 0;
    replace(
      this.element,
      h("h2", {}, rows.length > SHOWN ? t("Events that met, the newest {count}", { count: SHOWN }) : t("Events that met")),
      h(
        "ul",
        { class: "progress-list" },
        ...rows
          .slice(-SHOWN)
          .reverse()
          .map((row) => this.row(row)),
      ),
    );
  }

  private row(row: Detection): HTMLElement {
    const { feed, timeZone } = this.context;
    const lasts = row.end !== null && row.end > row.start ? t(", over {end}", { end: formatSpan(row.end - row.start, feed.time) }) : "";
    const open = h(
      "button",
      { type: "button", class: "progress-row found-row", "aria-pressed": "false" },
      longName("strong", row.entities.join(", ")),
      h("span", { class: "small muted" }, `${formatMoment(row.end ?? row.start, feed.time, timeZone)}${lasts}`),
    );
    open.addEventListener("click", () => {
      this.chosen?.setAttribute("aria-pressed", "false");
      this.chosen = this.chosen === open ? null : open;
      this.chosen?.setAttribute("aria-pressed", "true");
      this.onShow(this.chosen === null ? null : row);
    });
    return h("li", {}, open);
  }
}

/**
 * The events of a detection as labelled points, and lines: between every pair,
 * or from each to the next.
 */
export function eventShapes({ evidence }: Detection, { feed, timeZone }: EditorContext, lines: "between all" | "in order"): MapShape[] {
  const placed = evidence.flatMap(({ variable, t, x, y }) =>
    x === null || y === null ? [] : [{ variable, t, at: [x, y] as [number, number] }],
  );
  const ends = (i: number): typeof placed => (lines === "in order" ? placed.slice(i + 1, i + 2) : placed.slice(i + 1));
  const drawn = placed.flatMap((one, i) => ends(i).map((other) => [[one.at, other.at, one.at]]));
  const points = placed.map(({ variable, t, at }, i): MapShape => ({
    id: `event-${i}`,
    geometry: { type: "Point", coordinates: at },
    label: `${variable} · ${formatMoment(t, feed.time, timeZone)}`,
    active: true,
  }));
  return drawn.length === 0
    ? points
    : [{ id: "lines", geometry: { type: "MultiPolygon", coordinates: drawn }, label: "", active: false }, ...points];
}
