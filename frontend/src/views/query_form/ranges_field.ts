/**
 * Ranges of values, each with a slider over the histogram of the feed's recent values
 * and number fields next to it.
 */

import { get, query as address } from "../../lib/api";
import { button, h, iconButton, replace } from "../../lib/dom";
import { histogram, type Histogram } from "../../data/histogram_data";
import { columnsOf, numericColumns } from "../../lib/columns";
import type { Feed } from "../../lib/shapes";
import type { RangeEntry } from "../../data/watched_data";
import { columnSelect } from "./conditions_field";
import { RangeSlider } from "./range_slider";
import { t } from "../../lib/texts";

/** From a specification. */
const MOST = 9;

export interface RangesOptions {
  feed: Feed;
  entries: readonly RangeEntry[];
  onChange: (entries: RangeEntry[]) => void;
}

export class RangesField {
  readonly element = h("div", { class: "stack", "data-pointer": "/ranges" });
  private entries: RangeEntry[];
  private readonly histograms = new Map<string, Promise<Histogram | null>>();

  constructor(private readonly options: RangesOptions) {
    this.entries = [...options.entries];
    this.render();
  }

  /** Adds the first range if there is none. */
  begin(): void {
    if (this.entries.length === 0) this.set([this.fresh()]);
  }

  private fresh(): RangeEntry {
    const used = new Set(this.entries.map((row) => row.column));
    const names = numericColumns(this.options.feed).filter((name) => !used.has(name));
    return { column: names.find((name) => name !== "x" && name !== "y") ?? names[0] ?? "x", low: "", high: "" };
  }

  private set(entries: RangeEntry[]): void {
    this.entries = entries;
    this.render();
    this.options.onChange(entries);
  }

  private render(): void {
    replace(
      this.element,
      h("p", { class: "small muted" }, t("Inside means: every value is in its range, the lower bound included, the upper one not.")),
      ...this.entries.map((entry, i) => this.row(entry, i)),
      h(
        "div",
        {},
        button(t("Add a range"), {
          icon: "plus",
          kind: "button-sm",
          disabled: this.entries.length >= MOST,
          onClick: () => this.set([...this.entries, this.fresh()]),
        }),
      ),
    );
  }

  private row(entry: RangeEntry, i: number): HTMLElement {
    const changed = (): void => this.options.onChange(this.entries);
    const low = bound(`range-low-${i}`, t("At least"), entry.low);
    const high = bound(`range-high-${i}`, t("Below"), entry.high);
    const slider = new RangeSlider(entry.column, columnsOf(this.options.feed)[entry.column] === "int", (from, to) => {
      [entry.low, entry.high] = [low.value, high.value] = [from, to];
      changed();
    });
    const typed = (): void => {
      [entry.low, entry.high] = [low.value, high.value];
      slider.set(entry.low, entry.high);
      changed();
    };
    low.addEventListener("input", typed);
    high.addEventListener("input", typed);
    slider.set(entry.low, entry.high);
    void this.histogramOf(entry.column).then((found) => slider.show(found));
    const select = columnSelect(`range-column-${i}`, numericColumns(this.options.feed), entry.column, (column) =>
      this.set(this.entries.map((one) => (one === entry ? { column, low: "", high: "" } : one))),
    );
    const remove = iconButton(t("Remove this range"), "trash-2", {
      kind: "button-quiet button-sm",
      onClick: () => this.set(this.entries.filter((one) => one !== entry)),
    });
    return h(
      "div",
      { class: "range-entry", "data-pointer": `/ranges/${entry.column}` },
      h("div", { class: "entry-row range-row" }, select, low, h("span", { class: "faint" }, t("to below")), high, remove),
      slider.element,
    );
  }

  /** Requested once per column; without a histogram only the number fields are shown. */
  private histogramOf(column: string): Promise<Histogram | null> {
    const known = this.histograms.get(column);
    if (known !== undefined) return known;
    const asked = get(address(`feeds/${this.options.feed.name}/histogram`, { column, bins: 48 }), histogram).catch(() => null);
    this.histograms.set(column, asked);
    return asked;
  }
}

function bound(id: string, name: string, value: string): HTMLInputElement {
  return h("input", {
    class: "input num",
    id,
    inputmode: "decimal",
    placeholder: t("no limit"),
    value,
    "aria-label": name,
    autocomplete: "off",
  });
}
