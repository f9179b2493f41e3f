/** Which period of history: the last minutes, or between two instants. */

import { lastWords, type Period, type PeriodRequest } from "../data/period";
import type { Feed } from "../lib/shapes";
import { button, empty, h } from "../lib/dom";
import { fromWall, toWall, zoneName, type Zone } from "../lib/time";
import { t } from "../lib/texts";

const OTHER = "other";

export interface PeriodOptions {
  feed: Feed;
  zone: Zone;
  /** The lengths that can be chosen, ascending. */
  minutes: readonly number[];
  /** Of them, the one that is chosen at first where rows were loaded at once, not as they happened. */
  ofHistory: number;
  /** Of the fields' ids. */
  prefix: string;
}

export class PeriodField {
  readonly select: HTMLSelectElement;
  /** Shown below the choice, while the ends are entered. */
  readonly ends: HTMLElement;
  private readonly feed: Feed;
  private readonly zone: Zone;
  private readonly from: HTMLInputElement;
  private readonly to: HTMLInputElement;

  constructor({ feed, zone, minutes, prefix, ofHistory }: PeriodOptions) {
    this.feed = feed;
    this.zone = zone;
    const initial = isHistory(feed) ? ofHistory : 10;
    const last = minutes.map((value) => h("option", { value, selected: value === initial }, lastWords(value, feed.time)));
    this.select = h(
      "select",
      { class: "select select-sm", id: `${prefix}-period`, "aria-label": t("Period"), onChange: () => this.show() },
      ...last,
      h("option", { value: OTHER }, t("from … to …")),
    );
    this.from = this.moment(`${prefix}-from`);
    this.to = this.moment(`${prefix}-to`);
    const zoned = feed.time === "ms" ? h("span", { class: "small faint" }, zoneName(zone)) : null;
    this.ends = h(
      "div",
      { class: "period-ends", hidden: true },
      h("label", { for: this.from.id }, t("From")),
      this.from,
      h("label", { for: this.to.id }, t("to")),
      this.to,
      zoned,
    );
  }

  set(period: Period): void {
    this.select.value = OTHER;
    this.fill(period);
    this.show();
  }

  /** The ends that are there when the reader begins to enter others. */
  suggest(period: Period): void {
    if (this.select.value !== OTHER) this.fill(period);
  }

  /** A button that chooses the next longer of the lengths, and then `ask`s; null: there is none. */
  longer(label: (period: string) => string, ask: () => unknown): HTMLElement | null {
    const next = this.select.options[this.select.selectedIndex + 1];
    if (next === undefined || next.value === OTHER) return null;
    const choose = (): unknown => {
      this.select.value = next.value;
      this.show();
      return ask();
    };
    return button(label(next.text), { icon: "history", kind: "button-sm", onClick: choose });
  }

  /** The parameters of the request; null if an end is missing or they are in the wrong order. */
  value(): PeriodRequest | null {
    if (this.select.value !== OTHER) return { minutes: Number(this.select.value) };
    const [from, to] = [this.read(this.from), this.read(this.to)];
    return from === null || to === null || from >= to ? null : { from, to };
  }

  private fill({ from, to }: Period): void {
    const isMs = this.feed.time === "ms";
    // The fields hold whole seconds: the period is rounded outwards and loses nothing.
    this.from.value = isMs ? toWall(from, this.zone) : String(from);
    this.to.value = isMs ? toWall(to + 999, this.zone) : String(to);
  }

  private show(): void {
    this.ends.hidden = this.select.value !== OTHER;
  }

  private moment(id: string): HTMLInputElement {
    return this.feed.time === "ms"
      ? h("input", { class: "input input-sm num", id, type: "datetime-local", step: 1 })
      : h("input", { class: "input input-sm num", id, inputmode: "numeric", autocomplete: "off", placeholder: t("tick") });
  }

  private read({ value }: HTMLInputElement): number | null {
    if (this.feed.time === "ms") return fromWall(value, this.zone);
    return /^-?\d+$/.test(value.trim()) ? Number(value) : null;
  }
}

/** Rows that were loaded at once, not as they happened: mostly few in the last minutes. */
function isHistory({ time, wall_clock }: Feed): boolean {
  return time === "ms" && !wall_clock;
}

/** In place of a result, where an end is missing or they are in the wrong order. */
export const whichPeriod = (): HTMLElement => empty("clock", t("Which period?"), t("Give it two moments, the earlier one first."));
