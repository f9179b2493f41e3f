/**
 * Two thumbs over a histogram: by pointer and by keyboard. A thumb at its end of
 * the scale means no limit.
 */

import { barHeights, scaleOf, shareOf, valueAt, type Histogram, type Scale } from "../../data/histogram_data";
import { h, replace } from "../../lib/dom";
import { formatNumber } from "../../lib/time";
import { t } from "../../lib/texts";

type End = "low" | "high";
/** Steps of a key. */
const KEYS: Record<string, number> = {
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  PageDown: -10,
  PageUp: 10,
  Home: -Infinity,
  End: Infinity,
};

export class RangeSlider {
  readonly element = h("div", { class: "range-slider", hidden: true });
  private readonly bars = h("div", { class: "range-bars", "aria-hidden": "true" });
  private readonly track = h("div", { class: "range-track" }, this.bars);
  private readonly caption = h("div", { class: "range-caption small faint num" });
  private readonly thumbs: Record<End, HTMLElement>;
  private scale: Scale | null = null;
  private edges: readonly number[] = [];
  /** Null: no limit. */
  private bounds: Record<End, number | null> = { low: null, high: null };

  constructor(
    column: string,
    private readonly isWhole: boolean,
    /** The bounds as texts for the fields; "": no limit. */
    private readonly onChange: (low: string, high: string) => void,
  ) {
    this.thumbs = { low: this.thumb("low", t("{column}, at least", { column })), high: this.thumb("high", `${column}, below`) };
    this.track.append(this.thumbs.low, this.thumbs.high);
    this.track.addEventListener("pointerdown", (event) => this.pressed(event));
    this.element.append(this.track, this.caption);
  }

  /** The column's recent values; null, or values that are all equal, hide the slider. */
  show(found: Histogram | null): void {
    this.scale = found === null ? null : scaleOf(found, this.isWhole);
    this.element.hidden = this.scale === null;
    if (found === null || this.scale === null) return;
    this.edges = found.edges;
    const { scale } = this;
    const left = (i: number): string => `${shareOf(scale, found.edges[i] ?? 0) * 100}%`;
    const width = (i: number): string => `${(shareOf(scale, found.edges[i + 1] ?? 0) - shareOf(scale, found.edges[i] ?? 0)) * 100}%`;
    replace(
      this.bars,
      ...barHeights(found.counts).map((height, i) =>
        h("span", { class: "range-bar", vars: { "--height": `${height * 100}%`, "--left": left(i), "--width": width(i) } }),
      ),
    );
    replace(
      this.caption,
      h("span", {}, formatNumber(found.min ?? 0)),
      h("span", {}, t("the last {rows} values", { rows: formatNumber(found.rows) })),
      h("span", {}, formatNumber(found.max ?? 0)),
    );
    this.place();
  }

  /** The fields changed. */
  set(low: string, high: string): void {
    this.bounds = { low: read(low), high: read(high) };
    this.place();
  }

  private thumb(end: End, name: string): HTMLElement {
    const element = h("div", { class: "range-thumb", role: "slider", tabindex: 0, "aria-label": name });
    element.addEventListener("keydown", (event) => {
      const steps = KEYS[event.key];
      if (steps === undefined || this.scale === null) return;
      event.preventDefault();
      this.move(end, this.at(end) + steps * this.scale.step);
    });
    return element;
  }

  private at(end: End): number {
    const scale = this.scale ?? { min: 0, max: 1 };
    return Math.min(scale.max, Math.max(scale.min, this.bounds[end] ?? (end === "low" ? scale.min : scale.max)));
  }

  private pressed(event: PointerEvent): void {
    if (this.scale === null || event.button !== 0) return;
    event.preventDefault();
    const { scale } = this;
    const value = (one: PointerEvent): number => {
      const box = this.track.getBoundingClientRect();
      return valueAt(scale, (one.clientX - box.left) / box.width);
    };
    const from = value(event);
    const isHigh =
      Math.abs(from - this.at("high")) < Math.abs(from - this.at("low")) || (this.at("low") === this.at("high") && from > this.at("low"));
    const end: End = isHigh ? "high" : "low";
    this.thumbs[end].focus();
    this.track.setPointerCapture(event.pointerId);
    this.move(end, from);
    const moved = (one: PointerEvent): void => this.move(end, value(one));
    const done = (): void => {
      this.track.removeEventListener("pointermove", moved);
      this.track.removeEventListener("pointerup", done);
      this.track.removeEventListener("pointercancel", done);
    };
    this.track.addEventListener("pointermove", moved);
    this.track.addEventListener("pointerup", done);
    this.track.addEventListener("pointercancel", done);
  }

  /** Thumbs keep their order; a thumb at its end of the scale means no limit. */
  private move(end: End, wanted: number): void {
    const { scale } = this;
    if (scale === null) return;
    const inside =
      end === "low"
        ? Math.min(wanted, this.at("high") - (this.bounds.high === null ? 0 : scale.step))
        : Math.max(wanted, this.at("low") + (this.bounds.low === null ? 0 : scale.step));
    const value = valueAt(scale, shareOf(scale, inside));
    const isFree = end === "low" ? value <= scale.min : value >= scale.max;
    this.bounds[end] = isFree ? null : value;
    this.place();
    this.onChange(String(this.bounds.low ?? ""), String(this.bounds.high ?? ""));
  }

  private place(): void {
    const { scale } = this;
    if (scale === null) return;
    for (const end of ["low", "high"] as const) {
      const element = this.thumbs[end];
      const value = this.at(end);
      element.style.setProperty("--at", `${shareOf(scale, value) * 100}%`);
      element.setAttribute("aria-valuemin", String(scale.min));
      element.setAttribute("aria-valuemax", String(scale.max));
      element.setAttribute("aria-valuenow", String(value));
      element.setAttribute("aria-valuetext", this.bounds[end] === null ? t("no limit") : formatNumber(value));
    }
    [...this.bars.children].forEach((bar, i) => {
      const [from, to] = [this.edges[i] ?? 0, this.edges[i + 1] ?? 0];
      bar.classList.toggle("is-in", to > this.at("low") && from < this.at("high"));
    });
  }
}

function read(text: string): number | null {
  const value = Number(text.trim().replace("−", "-"));
  return text.trim() === "" || !Number.isFinite(value) ? null : value;
}
