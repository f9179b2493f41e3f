/**
 * The content of a file in a sample: positions, intervals between reports, rows, and the faults of
 * some rows.
 */

import * as L from "leaflet";
import { icon, h, replace } from "../../lib/dom";
import { token } from "../../lib/colours";
import { formatMoment, formatNumber, formatSpan, zoneName } from "../../lib/time";
import type { Feed } from "../../lib/shapes";
import { intervalLabel, nameOfAll, type Inspection } from "../../data/upload_data";
import { latLng, openMap, type FeedMap } from "../map_view";
import { t } from "../../lib/texts";

export class SampleView {
  readonly element: HTMLElement;
  /** Otherwise only the empty map would show that no position was recognised. */
  private readonly noPlace = h(
    "p",
    { class: "notice notice-high", hidden: true },
    icon("triangle-alert"),
    h(
      "span",
      {},
      t("No place is read from these rows, so maps and regions will show nothing. Choose the columns under Where, if the file has them."),
    ),
  );
  private readonly oneThing = h("div", {});
  private readonly mapPlace = h("div", { class: "wizard-map", hidden: true });
  private readonly facts = h("div", {});
  private readonly intervals = h("div", {});
  private readonly faults = h("div", {});
  private readonly table = h("div", {});
  private map: FeedMap | null = null;
  private isPlanar: boolean | null = null;
  private dots: L.LayerGroup | null = null;

  constructor(private readonly zone: string) {
    this.element = h(
      "div",
      { class: "stack-lg wizard-sample", "aria-label": t("Sample") },
      this.facts,
      this.faults,
      this.oneThing,
      this.noPlace,
      this.mapPlace,
      this.intervals,
      this.table,
    );
  }

  show(found: Inspection): void {
    this.showFacts(found);
    this.showFaults(found);
    this.showOneThing(found);
    this.showMap(found);
    this.showIntervals(found);
    this.showRows(found);
  }

  private showFacts(found: Inspection): void {
    const unit = found.reading.time_format === "ticks" ? "ticks" : "ms";
    const moment = (at: number): string => formatMoment(at, unit, this.zone);
    const moments =
      found.from === null || found.to === null
        ? t("no times")
        : t("{from} to {to} ({span})", { from: moment(found.from), to: moment(found.to), span: formatSpan(found.to - found.from, unit) });
    const facts: [string, string][] = [
      [t("Rows looked at"), formatNumber(found.count)],
      [t("Can be used"), formatNumber(found.good)],
      [t("Things"), formatNumber(found.entities)],
      [unit === "ticks" ? t("Time") : t("Time in {zone}", { zone: zoneName(this.zone) }), moments],
    ];
    replace(
      this.facts,
      h("dl", { class: "facts" }, ...facts.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", { class: "num" }, text)))),
    );
  }

  private showOneThing(found: Inspection): void {
    const thing = nameOfAll(found);
    if (thing === null) {
      replace(this.oneThing);
      return;
    }
    const text = t("No column names a thing: all rows are of “{thing}”. If there are several things, choose their column under Who.", {
      thing,
    });
    replace(this.oneThing, h("p", { class: "notice notice-high" }, icon("triangle-alert"), h("span", {}, text)));
  }

  private showFaults(found: Inspection): void {
    if (found.fault_count === 0) {
      replace(
        this.faults,
        h("p", { class: "notice notice-good" }, icon("circle-check"), h("span", {}, t("Every row of the sample can be used."))),
      );
      return;
    }
    const shown = found.faults
      .slice(0, 8)
      .map((fault) =>
        h(
          "li",
          {},
          h("strong", { class: "num" }, t("Line {line}", { line: formatNumber(fault.line) })),
          " ",
          fault.problem,
          fault.row === "" ? null : h("code", { class: "mono letter-row" }, JSON.stringify(fault.row)),
        ),
      );
    replace(
      this.faults,
      h(
        "div",
        { class: `notice ${found.good === 0 ? "notice-critical" : "notice-high"}` },
        icon("triangle-alert"),
        h(
          "span",
          {},
          t("{faultcount} of {count} rows cannot be used; such rows become dead letters.", {
            faultcount: formatNumber(found.fault_count),
            count: formatNumber(found.count),
          }),
          " ",
          t("Correct them in the file before you load it: sent again later, rows of a history come too late to count."),
        ),
      ),
      h("ul", { class: "wizard-faults", tabindex: 0, "aria-label": t("Rows that cannot be used") }, ...shown),
      found.fault_count > shown.length
        ? h(
            "p",
            { class: "hint" },
            t("These are the first {count}. After loading, all are under Feeds, Dead letters.", { count: shown.length }),
          )
        : null,
    );
  }

  private showMap(found: Inspection): void {
    const isPlanar = found.reading.crs === "plane";
    this.mapPlace.hidden = found.places.length === 0;
    this.noPlace.hidden = found.places.length > 0 || found.good === 0;
    if (found.places.length === 0 || found.bounds === null) return;
    if (this.map === null || this.isPlanar !== isPlanar) {
      this.map?.remove();
      this.isPlanar = isPlanar;
      const feed: Feed = {
        name: "sample",
        title: t("the sample"),
        crs: isPlanar ? "planar" : "geographic",
        time: "ms",
        tick: 1,
        lateness: 0,
        columns: {},
        wall_clock: false,
        plan_image: null,
        plan_bounds: null,
        view: null,
        editable: false,
      };
      const place = h("div", { class: "wizard-map-inner" });
      this.mapPlace.replaceChildren(place);
      this.map = openMap(place, feed, { isSmall: true });
      this.dots = null;
    }
    this.dots?.remove();
    const renderer = L.canvas({ pane: "entities" });
    const style = { renderer, radius: 2.5, stroke: false, fillColor: token("--accent"), fillOpacity: 0.75, interactive: false };
    this.dots = L.layerGroup(found.places.map(([x, y]) => L.circleMarker(latLng(x, y), style))).addTo(this.map.map);
    this.map.fit(found.bounds);
  }

  private showIntervals(found: Inspection): void {
    const most = Math.max(1, ...found.intervals.map(({ count }) => count));
    if (found.intervals.every(({ count }) => count === 0)) {
      replace(this.intervals);
      return;
    }
    const bars = found.intervals.map(({ up_to, count }, at) => {
      const label = intervalLabel(up_to, found.intervals[at - 1]?.up_to ?? null);
      const number = formatNumber(count);
      return h(
        "li",
        { class: "interval", title: `${label}: ${number}` },
        h("i", { vars: { "--h": `${(count / most) * 100}%` } }),
        h("span", { class: "small faint" }, label, h("span", { class: "visually-hidden" }, `: ${number}`)),
      );
    });
    replace(
      this.intervals,
      h("h2", { class: "section-title" }, t("Time between two rows of a thing")),
      h("ul", { class: "intervals", "aria-label": t("Histogram of the time between two rows of a thing") }, ...bars),
    );
  }

  private showRows(found: Inspection): void {
    const names = found.columns.map(({ name }) => name);
    this.table.hidden = names.length === 0;
    const head = h("tr", {}, h("th", {}, t("Line")), ...names.map((name) => h("th", {}, name)));
    const rows = found.rows
      .slice(0, 12)
      .map((row, at) =>
        h(
          "tr",
          {},
          h("td", { class: "num faint" }, formatNumber(found.lines[at] ?? at + 1)),
          ...names.map((name) => h("td", { class: "nowrap" }, cell(row[name]))),
        ),
      );
    replace(
      this.table,
      h("h2", { class: "section-title" }, t("The first rows, as they are in the file")),
      h("div", { class: "table-wrap" }, h("table", { class: "table" }, h("thead", {}, head), h("tbody", {}, ...rows))),
    );
  }
}

function cell(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null || value === undefined ? "" : JSON.stringify(value);
}
