/** A region's vertices as a table of numbers: drawing by keyboard, and for exact coordinates. */

import { button, h, iconButton, replace } from "../lib/dom";
import { isCircle, middleOf, openRing, rectangleIn, withRing, type Box, type Geometry, type Ring } from "../lib/regions";
import { t } from "../lib/texts";

export class CoordinateTableView {
  readonly element = h("div", { class: "stack" });
  private geometry: Geometry | null = null;

  /**
   * `names` are the headings of the two columns: longitude and latitude, or x and y. A new shape
   * begins in the middle of `shownBox`.
   */
  constructor(
    private readonly names: [string, string],
    private readonly radiusUnit: string,
    private readonly onChange: (geometry: Geometry) => void,
    private readonly shownBox: () => Box,
  ) {
    this.show(null);
  }

  show(geometry: Geometry | null): void {
    if (this.element.contains(document.activeElement) && JSON.stringify(geometry) === JSON.stringify(this.geometry)) return;
    this.geometry = geometry;
    if (geometry === null) {
      replace(
        this.element,
        h(
          "div",
          { class: "row row-wrap" },
          button(t("Start with four corners"), {
            icon: "pentagon",
            kind: "button-sm",
            onClick: () => this.take(rectangleIn(this.shownBox())),
          }),
          button(t("Start with a circle"), {
            icon: "circle",
            kind: "button-sm",
            onClick: () => this.take({ center: middleOf(this.shownBox()), radius: 100 }),
          }),
        ),
      );
    } else if (isCircle(geometry)) {
      replace(this.element, this.circle(geometry.center, geometry.radius));
    } else {
      replace(this.element, this.corners(openRing(geometry)));
    }
  }

  private take(geometry: Geometry): void {
    this.show(geometry);
    this.onChange(geometry);
  }

  private number(name: string, value: number, onValue: (value: number) => void): HTMLInputElement {
    const input = h("input", { class: "input input-sm num", inputmode: "decimal", "aria-label": name, value: String(value) });
    input.addEventListener("change", () => {
      const typed = Number(input.value.replace(",", "."));
      const isGood = input.value.trim() !== "" && Number.isFinite(typed);
      input.setAttribute("aria-invalid", String(!isGood));
      if (isGood) onValue(typed);
    });
    return input;
  }

  private circle([x, y]: [number, number], radius: number): HTMLElement {
    return h(
      "div",
      { class: "coordinate-circle" },
      h(
        "label",
        { class: "field" },
        h("span", { class: "hint" }, this.names[0]),
        this.number(t("Centre, {value}", { value: this.names[0] }), x, (value) => this.take({ center: [value, y], radius })),
      ),
      h(
        "label",
        { class: "field" },
        h("span", { class: "hint" }, this.names[1]),
        this.number(t("Centre, {value}", { value: this.names[1] }), y, (value) => this.take({ center: [x, value], radius })),
      ),
      h(
        "label",
        { class: "field" },
        h("span", { class: "hint" }, t("Radius ({radiusUnit})", { radiusUnit: this.radiusUnit })),
        this.number(t("Radius"), radius, (value) => this.take({ center: [x, y], radius: value })),
      ),
    );
  }

  private corners(ring: Ring): HTMLElement {
    const set = (changed: Ring): void => {
      if (this.geometry !== null && !isCircle(this.geometry)) this.take(withRing(this.geometry, changed));
    };
    const rows = ring.map(([x, y], i) =>
      h(
        "tr",
        {},
        h("td", { class: "faint num" }, i + 1),
        h(
          "td",
          {},
          this.number(t("Corner {i}, {value}", { i: i + 1, value: this.names[0] }), x, (value) =>
            set(ring.map((one, n) => (n === i ? [value, one[1]] : one))),
          ),
        ),
        h(
          "td",
          {},
          this.number(t("Corner {i}, {value}", { i: i + 1, value: this.names[1] }), y, (value) =>
            set(ring.map((one, n) => (n === i ? [one[0], value] : one))),
          ),
        ),
        h(
          "td",
          {},
          iconButton(t("Remove corner {i}", { i: i + 1 }), "trash-2", {
            kind: "button-quiet button-sm",
            disabled: ring.length <= 3,
            onClick: () => set(ring.filter((_, n) => n !== i)),
          }),
        ),
      ),
    );
    const last = ring[ring.length - 1] ?? [0, 0];
    const first = ring[0] ?? [0, 0];
    const middle: [number, number] = [(last[0] + first[0]) / 2, (last[1] + first[1]) / 2];
    return h(
      "div",
      { class: "stack" },
      h(
        "div",
        { class: "table-wrap coordinate-table" },
        h(
          "table",
          { class: "table table-tight" },
          h("thead", {}, h("tr", {}, h("th", {}, ""), h("th", {}, this.names[0]), h("th", {}, this.names[1]), h("th", {}, ""))),
          h("tbody", {}, ...rows),
        ),
      ),
      h("div", {}, button(t("Add a corner"), { icon: "plus", kind: "button-sm", onClick: () => set([...ring, middle]) })),
    );
  }
}
