/** A query, or a part of one, as text with its faults by line and column. */

import type { PlacedFault } from "../../../lib/api";
import { h, replace } from "../../../lib/dom";
import { t } from "../../../lib/texts";

export interface PlacedTextOptions {
  id: string;
  /** Its accessible name. */
  label: string;
  pointer: string;
  onChange: (text: string) => void;
}

export class PlacedTextView {
  readonly element: HTMLElement;
  private readonly area: HTMLTextAreaElement;
  private readonly lines = h("div", { class: "trigger-lines mono num", "aria-hidden": "true" });
  private readonly faults = h("ul", { class: "trigger-faults", "aria-live": "polite" });

  constructor({ id, label, pointer, onChange }: PlacedTextOptions) {
    this.area = h("textarea", { class: "textarea mono trigger-text", id, spellcheck: "false", wrap: "off", "aria-label": label });
    this.area.addEventListener("input", () => {
      this.number(new Set());
      onChange(this.area.value);
    });
    this.area.addEventListener("scroll", () => (this.lines.scrollTop = this.area.scrollTop));
    this.element = h(
      "div",
      { class: "stack", "data-pointer": pointer },
      h("div", { class: "trigger" }, this.lines, this.area),
      this.faults,
    );
  }

  get text(): string {
    return this.area.value;
  }

  show(text: string): void {
    if (this.area.value !== text) this.area.value = text;
    this.showFaults([]);
  }

  showFaults(faults: readonly PlacedFault[]): void {
    this.number(new Set(faults.map((fault) => fault.line ?? 0)));
    replace(
      this.faults,
      ...faults.map((fault) => {
        const text = fault.message.replace(/^\p{L}+ \d+, \p{L}+ \d+: /u, "");
        if (fault.line === null) return h("li", {}, text);
        const go = h(
          "button",
          { type: "button", class: "trigger-fault" },
          h("span", { class: "num" }, t("line {line}, column {column}", { line: fault.line, column: fault.column ?? 1 })),
          text,
        );
        go.addEventListener("click", () => this.go(fault.line ?? 1, fault.column ?? 1));
        return h("li", {}, go);
      }),
    );
  }

  private number(wrong: ReadonlySet<number>): void {
    const count = this.area.value.split("\n").length;
    replace(this.lines, ...Array.from({ length: count }, (_, i) => h("span", { class: wrong.has(i + 1) ? "wrong" : "" }, i + 1)));
    this.lines.scrollTop = this.area.scrollTop;
  }

  private go(line: number, column: number): void {
    const at =
      this.area.value
        .split("\n")
        .slice(0, line - 1)
        .reduce((sum, one) => sum + one.length + 1, 0) +
      column -
      1;
    this.area.focus();
    this.area.setSelectionRange(at, at + 1);
  }
}
