/**
 * A flood in a few rows: each group with its count and a strip of the opening times of its alerts.
 */

import { t } from "../lib/texts";
import { type AlertGroup } from "../lib/shapes";
import { get } from "../lib/api";
import { alertGroups } from "../lib/answers";
import { age } from "../lib/ages";
import { button, empty, h, replace, svg } from "../lib/dom";
import { formatNumber } from "../lib/time";
import { SEVERITY_NAMES } from "../lib/words";
import { fail } from "./shell_view";

export interface GroupHandlers {
  /** The reader wants to see the alerts of a group. */
  open: (key: string) => void;
  acknowledge: (group: AlertGroup) => void;
}

const HEIGHT_PX = 26;
const BAR_PX = 5;

export class DeskGroupsView {
  private readonly rows = h("tbody", {});
  readonly element = h(
    "div",
    { class: "desk-scroll" },
    h(
      "table",
      { class: "table groups-table" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...[t("Severity"), t("Group"), t("Alerts"), t("Unattended"), t("Last 24 hours"), t("Newest")].map((text) =>
            h("th", { scope: "col" }, text),
          ),
          h("td", {}),
        ),
      ),
      this.rows,
    ),
  );
  private asked = 0;

  constructor(private readonly handlers: GroupHandlers) {}

  /** `filters`: in the form of the API. */
  async load(by: string, filters: URLSearchParams): Promise<number> {
    const turn = ++this.asked;
    const search = new URLSearchParams(filters);
    search.set("by", by);
    try {
      const { results } = await get(`alerts/groups?${search.toString()}`, alertGroups);
      if (turn === this.asked) this.show(results);
      return results.length;
    } catch (error) {
      fail(error);
      return 0;
    }
  }

  private show(groups: AlertGroup[]): void {
    replace(
      this.rows,
      ...(groups.length === 0
        ? [h("tr", {}, h("td", { colspan: 7 }, empty("bell", t("Nothing here"), t("No alert matches these filters."))))]
        : groups.map((one) => this.row(one))),
    );
  }

  private row(group: AlertGroup): HTMLElement {
    return h(
      "tr",
      { "data-group": group.key },
      h("td", {}, h("span", { class: `badge badge-dot badge-${group.severity}` }, SEVERITY_NAMES[group.severity])),
      h(
        "td",
        {},
        h(
          "button",
          { type: "button", class: "query-name", onClick: () => this.handlers.open(group.key) },
          h("span", { class: "truncate" }, group.name),
        ),
      ),
      h("td", { class: "num" }, formatNumber(group.count)),
      h("td", { class: "num" }, formatNumber(group.unattended)),
      h("td", {}, strip(group.strip)),
      h("td", { class: "nowrap num" }, age(group.last)),
      h(
        "td",
        { class: "right" },
        group.unattended === 0
          ? null
          : button(t("Acknowledge"), {
              kind: "button-sm",
              "aria-label": t("Acknowledge {name}", { name: group.name }),
              onClick: () => this.handlers.acknowledge(group),
            }),
      ),
    );
  }
}

function strip(counts: readonly number[]): SVGSVGElement {
  const most = Math.max(1, ...counts);
  const bars = counts.map((count, i) =>
    svg("rect", { x: i * BAR_PX, y: HEIGHT_PX - bar(count, most), width: BAR_PX - 1, height: bar(count, most) }),
  );
  return svg(
    "svg",
    {
      class: "strip",
      width: counts.length * BAR_PX,
      height: HEIGHT_PX,
      role: "img",
      "aria-label": t("At most {most} in one part of the time", { most }),
    },
    ...bars,
  );
}

/** A single alert stays visible next to a thousand. */
function bar(count: number, most: number): number {
  return count === 0 ? 1 : Math.max(3, Math.round((count / most) * HEIGHT_PX));
}
