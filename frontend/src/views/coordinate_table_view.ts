/** A region's vertices as a table of numbers: drawing by keyboard, and for exact coordinates. */

import { button, h, iconButton, replace } from "../lib/dom";
import {
  isCircle,
  middleOf,
  openRing,
  rectangleIn,
  withRing,
  type Box,
  type CircleDocument,
  type Geometry,
  type Ring,
} from "../lib/regions";
import { cornersOfHole, holesOf, withoutHole } from "../lib/rings";
import { t } from "../lib/texts";

export class CoordinateTableView {
  readonly element = h("div", { class: "stack" });
  private geometry: Geometry | null = null;
  /** In the order of `numbersOf`. */
  private fields: HTMLInputElement[] = [];

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
    const isAlike = geometry !== null && this.geometry !== null && formOf(geometry) === formOf(this.geometry);
    this.geometry = geometry;
    // The fields are not replaced, so they keep the focus and Tab moves from one to the next.
    if (isAlike) {
      this.fill(numbersOf(geometry));
      return;
    }
    this.fields = [];
    if (geometry === null) {
      replace(
        this.element,
        h(
          "div",
          { class: "row row-wrap" },
          button(t("Start with four corners"), {
            icon: "pentagon",
            kind: "button-sm",
            onClick: () => this.begin(rectangleIn(this.shownBox())),
          }),
          button(t("Start with a circle"), {
            icon: "circle",
            kind: "button-sm",
            onClick: () => this.begin({ center: middleOf(this.shownBox()), radius: 100 }),
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

  /** The button has been removed; the focus moves to the next step. */
  private begin(geometry: Geometry): void {
    this.take(geometry);
    this.fields[0]?.focus();
  }

  private fill(numbers: readonly number[]): void {
    this.fields.forEach((field, i) => {
      if (numberIn(field) === numbers[i]) return;
      field.value = String(numbers[i]);
      field.removeAttribute("aria-invalid");
    });
  }

  private number(name: string, value: number, onValue: (value: number) => void): HTMLInputElement {
    const input = h("input", { class: "input input-sm num", inputmode: "decimal", "aria-label": name, value: String(value) });
    input.addEventListener("change", () => {
      const typed = numberIn(input);
      input.setAttribute("aria-invalid", String(typed === null));
      if (typed !== null) onValue(typed);
    });
    this.fields.push(input);
    return input;
  }

  private circle([x, y]: [number, number], radius: number): HTMLElement {
    const set = (change: (now: CircleDocument) => CircleDocument): void => {
      if (this.geometry !== null && isCircle(this.geometry)) this.take(change(this.geometry));
    };
    const move = (change: (now: [number, number]) => [number, number]): void => set((now) => ({ ...now, center: change(now.center) }));
    return h(
      "div",
      { class: "coordinate-circle" },
      h(
        "label",
        { class: "field" },
        h("span", { class: "hint" }, this.names[0]),
        this.number(t("Centre, {value}", { value: this.names[0] }), x, (value) => move((now) => [value, now[1]])),
      ),
      h(
        "label",
        { class: "field" },
        h("span", { class: "hint" }, this.names[1]),
        this.number(t("Centre, {value}", { value: this.names[1] }), y, (value) => move((now) => [now[0], value])),
      ),
      h(
        "label",
        { class: "field" },
        h("span", { class: "hint" }, t("Radius ({radiusUnit})", { radiusUnit: this.radiusUnit })),
        this.number(t("Radius"), radius, (value) => set((now) => ({ ...now, radius: value }))),
      ),
    );
  }

  private corners(ring: Ring): HTMLElement {
    const set = (change: (now: Ring) => Ring): void => {
      if (this.geometry !== null && !isCircle(this.geometry)) this.take(withRing(this.geometry, change(openRing(this.geometry))));
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
            set((now) => now.map((one, n) => (n === i ? [value, one[1]] : one))),
          ),
        ),
        h(
          "td",
          {},
          this.number(t("Corner {i}, {value}", { i: i + 1, value: this.names[1] }), y, (value) =>
            set((now) => now.map((one, n) => (n === i ? [one[0], value] : one))),
          ),
        ),
        h(
          "td",
          {},
          iconButton(t("Remove corner {i}", { i: i + 1 }), "trash-2", {
            kind: "button-quiet button-sm",
            disabled: ring.length <= 3,
            onClick: () => {
              set((now) => now.filter((_, n) => n !== i));
              this.fields[2 * Math.min(i, ring.length - 2)]?.focus();
            },
          }),
        ),
      ),
    );
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
      h(
        "div",
        {},
        button(t("Add a corner"), {
          icon: "plus",
          kind: "button-sm",
          onClick: () => {
            set((now) => [...now, betweenEnds(now)]);
            this.fields.at(-2)?.focus();
          },
        }),
      ),
      this.holes(),
    );
  }

  /** Holes are drawn on the map; here they can be removed by keyboard, too. */
  private holes(): HTMLElement | null {
    const { geometry } = this;
    const places = geometry === null ? [] : holesOf(geometry);
    if (geometry === null || places.length === 0) return null;
    const lines = places.map((place, i) =>
      h(
        "li",
        { class: "row spread small" },
        t("Hole {number}, {count} corners", { number: i + 1, count: cornersOfHole(geometry, place) }),
        iconButton(t("Remove hole {number}", { number: i + 1 }), "trash-2", {
          kind: "button-quiet button-sm",
          onClick: () => {
            if (this.geometry !== null) this.take(withoutHole(this.geometry, place));
            this.fields[0]?.focus();
          },
        }),
      ),
    );
    return h("ul", { class: "stack-tight" }, ...lines);
  }
}

/** Geometries of the same form have the same fields. */
function formOf(geometry: Geometry): string {
  if (isCircle(geometry)) return "circle";
  return [openRing(geometry).length, ...holesOf(geometry).map((hole) => cornersOfHole(geometry, hole))].join();
}

function numbersOf(geometry: Geometry): number[] {
  return isCircle(geometry) ? [...geometry.center, geometry.radius] : openRing(geometry).flat();
}

function numberIn(field: HTMLInputElement): number | null {
  const typed = Number(field.value.replace(",", "."));
  return field.value.trim() !== "" && Number.isFinite(typed) ? typed : null;
}

function betweenEnds(ring: Ring): [number, number] {
  const [x, y] = ring[ring.length - 1] ?? [0, 0];
  const [firstX, firstY] = ring[0] ?? [0, 0];
  return [(x + firstX) / 2, (y + firstY) / 2];
}
