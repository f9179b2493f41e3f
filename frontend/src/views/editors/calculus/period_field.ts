/** Which period of history: the last minutes, or between two instants. */

import { minuteWords, type Period } from "../../../data/period";
import type { Feed } from "../../../lib/shapes";
import { h } from "../../../lib/dom";
import { fromWall, toWall, zoneName, type Zone } from "../../../lib/time";
import { t } from "../../../lib/texts";

const MINUTES = [1, 5, 10, 30, 60];
const OTHER = "other";

export class PeriodField {
  readonly select: HTMLSelectElement;
  /** Shown below the choice, while the ends are entered. */
  readonly ends: HTMLElement;
  private readonly from: HTMLInputElement;
  private readonly to: HTMLInputElement;

  constructor(
    private readonly feed: Feed,
    private readonly zone: Zone,
  ) {
    const last = MINUTES.map((value) =>
      h("option", { value, selected: value === 10 }, t("last {value}", { value: minuteWords(value, feed.time) })),
    );
    this.select = h(
      "select",
      { class: "select select-sm", id: "sandbox-period", "aria-label": t("Period"), onChange: () => this.show() },
      ...last,
      h("option", { value: OTHER }, t("from … to …")),
    );
    this.from = this.moment("sandbox-from");
    this.to = this.moment("sandbox-to");
    const zoned = feed.time === "ms" ? h("span", { class: "small faint" }, zoneName(zone)) : null;
    this.ends = h(
      "div",
      { class: "sandbox-ends", hidden: true },
      h("label", { for: this.from.id }, t("From")),
      this.from,
      h("label", { for: this.to.id }, t("to")),
      this.to,
      zoned,
    );
  }

  set({ from, to }: Period): void {
    this.select.value = OTHER;
    const isMs = this.feed.time === "ms";
    // The fields hold whole seconds: the period is rounded outwards and loses nothing.
    this.from.value = isMs ? toWall(from, this.zone) : String(from);
    this.to.value = isMs ? toWall(to + 999, this.zone) : String(to);
    this.show();
  }

  /** The parameters of the request; null if an end is missing or they are in the wrong order. */
  value(): { minutes: number } | Period | null {
    if (this.select.value !== OTHER) return { minutes: Number(this.select.value) };
    const [from, to] = [this.read(this.from), this.read(this.to)];
    return from === null || to === null || from >= to ? null : { from, to };
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
