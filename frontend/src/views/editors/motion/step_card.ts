/** One step of the track: its condition in one line, and its fields while it is active. */

import { button, h, icon, iconButton, replace } from "../../../lib/dom";
import { capitalised } from "../../../lib/words";
import { bounds, isCircle, isReference } from "../../../lib/regions";
import { SENSES, type MotionStep, type Point, type Sense, type Total } from "../../../data/motion_data";
import { timeWords, titleWords } from "../../../data/motion_words";
import { DurationField } from "../../query_form/duration_field";
import { RegionChoice } from "../../query_form/region_choice";
import type { EditorContext, MapShape } from "../editor";
import { t } from "../../../lib/texts";

const SENSE_TEXTS: Record<Sense, string> = { inside: t("Inside"), outside: t("Outside"), distance: t("Distance to") };

export interface StepHandlers {
  /** The step was changed; `isOther`: different fields or steps are to be shown. */
  onChange: (isOther: boolean) => void;
  /** Its region was changed; `isElsewhere`: the map should move to it. */
  onPlace: (isElsewhere: boolean) => void;
  onActivate: () => void;
  onMove: (by: number) => void;
  onRemove: () => void;
}

export class StepCard {
  readonly element: HTMLElement;
  private readonly step: MotionStep;
  private readonly title = h("strong", { class: "step-title" });
  private readonly time = h("span", { class: "hint" });
  private readonly id: string;
  private region: RegionChoice | null = null;

  constructor(
    private readonly steps: readonly MotionStep[],
    private readonly place: number,
    private readonly isActive: boolean,
    private readonly context: EditorContext,
    private readonly handlers: StepHandlers,
  ) {
    this.step = steps[place]!;
    this.id = `step-${this.step.id}`;
    this.element = h(
      "div",
      { class: `step-card${isActive ? " is-active" : ""}`, "data-pointer": `/predicates/${place}`, "data-step": this.step.id },
      this.head(),
      isActive ? h("div", { class: "step-body", id: `${this.id}-body` }, ...this.fields()) : null,
    );
    this.showSummary();
  }

  /**
   * On the map: an active, drawn region has handles; any other has its number in the
   * middle, however small it is.
   */
  shapes(): MapShape[] {
    const { place } = this.step;
    const label = String(this.place + 1);
    if (this.region !== null) return [this.region.shape(true, label)].flatMap((shape) => shape ?? []);
    if (place === null) return [];
    if (Array.isArray(place)) return [{ id: this.id, geometry: { type: "Point", coordinates: place }, label, active: this.isActive }];
    const geometry = isReference(place) ? this.context.regions.find((row) => row.name === place.region)?.geometry : place;
    const box = geometry === undefined ? null : bounds(geometry, this.context.feed.crs === "geographic");
    if (geometry === undefined || box === null) return [];
    const middle: [number, number] = isCircle(geometry) ? geometry.center : [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
    return [
      { id: this.id, geometry, label: "", active: this.isActive },
      { id: `${this.id}-number`, geometry: { type: "Point", coordinates: middle }, label, active: false },
    ];
  }

  focus(what: "title" | "up" | "down" | "grip"): void {
    const found =
      this.element.querySelector<HTMLElement>(`[data-part="${what}"]:not(:disabled)`) ??
      this.element.querySelector<HTMLElement>('[data-part="title"]');
    found?.focus();
  }

  private showSummary(): void {
    const { feed } = this.context;
    replace(this.title, titleWords(this.step, feed));
    replace(this.time, timeWords(this.steps, this.place, feed.time));
  }

  private head(): HTMLElement {
    const n = this.place + 1;
    const open = h(
      "button",
      {
        type: "button",
        class: "step-open",
        "data-part": "title",
        "aria-expanded": String(this.isActive),
        "aria-controls": `${this.id}-body`,
        onClick: () => this.handlers.onActivate(),
      },
      this.title,
      this.time,
    );
    const grip = h("span", { class: "step-grip", draggable: "true", title: t("Drag to another place") }, icon("move"));
    const move = (text: string, name: string, by: number, part: string, isOff: boolean): HTMLElement =>
      iconButton(text, name, {
        kind: "button-quiet button-sm",
        "data-part": part,
        disabled: isOff,
        onClick: () => this.handlers.onMove(by),
      });
    return h(
      "div",
      { class: "step-head" },
      grip,
      open,
      h(
        "div",
        { class: "step-actions" },
        move(t("Move step {n} up", { n }), "chevron-up", -1, "up", this.place === 0),
        move(t("Move step {n} down", { n }), "chevron-down", 1, "down", this.place === this.steps.length - 1),
        iconButton(t("Remove step {n}", { n }), "trash-2", {
          kind: "button-quiet button-sm",
          disabled: this.steps.length === 1,
          onClick: () => this.handlers.onRemove(),
        }),
      ),
    );
  }

  private changed(change: Partial<MotionStep>, isOther = false): void {
    Object.assign(this.step, change);
    this.showSummary();
    this.handlers.onChange(isOther);
  }

  // ---- Fields

  private fields(): HTMLElement[] {
    const senses = choice(
      t("What is asked"),
      SENSES.map((one) => [one, SENSE_TEXTS[one]]),
      this.step.sense,
      (sense) => this.sensed(sense as Sense),
    );
    return [senses, this.where(), ...this.when()];
  }

  private sensed(sense: Sense): void {
    const place = sense !== "distance" && Array.isArray(this.step.place) ? null : this.step.place;
    this.changed(
      { sense, place, isToPoint: sense === "distance" && place === null, isTimed: sense === "distance" || this.step.isTimed },
      true,
    );
  }

  private where(): HTMLElement {
    const pointer = `/predicates/${this.place}/${this.step.sense}`;
    const { place, sense, isToPoint } = this.step;
    if (isToPoint) return this.point(pointer, Array.isArray(place) ? place : null);
    const region = new RegionChoice({
      context: this.context,
      value: place,
      id: this.id,
      pointer,
      onChange: (isElsewhere) => {
        this.step.place = region.value();
        this.showSummary();
        this.handlers.onPlace(isElsewhere);
        this.handlers.onChange(false);
      },
    });
    this.region = region;
    region.draw(false);
    return h(
      "div",
      { class: "stack" },
      region.element,
      sense === "distance"
        ? h(
            "div",
            {},
            button(t("Take a point instead"), {
              icon: "map-pin",
              kind: "button-sm",
              onClick: () => this.changed({ place: null, isToPoint: true }, true),
            }),
          )
        : null,
    );
  }

  private point(pointer: string, place: Point | null): HTMLElement {
    const { context } = this;
    const names = context.feed.crs === "geographic" ? [t("Longitude"), t("Latitude")] : ["x", "y"];
    const inputs = names.map((name, axis) =>
      h("input", {
        class: "input num",
        id: `${this.id}-${axis}`,
        inputmode: "decimal",
        placeholder: name,
        "aria-label": name,
        autocomplete: "off",
        value: place === null ? "" : String(place[axis]),
      }),
    );
    const read = (): void => {
      const pair = inputs.map((one) => (one.value.trim() === "" ? NaN : Number(one.value)));
      this.changed({ place: pair.every(Number.isFinite) ? [pair[0]!, pair[1]!] : null });
      this.handlers.onPlace(false);
    };
    for (const one of inputs) one.addEventListener("input", read);
    const pick = (): void =>
      context.map.ask("point", (drawn) => {
        if (!Array.isArray(drawn)) return;
        inputs.forEach((one, axis) => (one.value = String(drawn[axis])));
        read();
      });
    return h(
      "div",
      { class: "stack", "data-pointer": pointer },
      h("div", { class: "point-row" }, ...inputs, button(t("Pick"), { icon: "map-pin", onClick: pick })),
      h(
        "div",
        {},
        button(t("Take a region instead"), {
          icon: "pentagon",
          kind: "button-sm",
          onClick: () => this.changed({ place: null, isToPoint: false }, true),
        }),
      ),
    );
  }

  private when(): HTMLElement[] {
    const { sense, isTimed, isForAll, total } = this.step;
    const inOrder = this.steps.map((step, i) => (i === this.place ? { ...step, isTimed: false, total: null } : step));
    const kinds = [
      ["order", capitalised(timeWords(inOrder, this.place, this.context.feed.time))],
      ["time", t("At a separate time")],
    ] as const;
    const order = choice(t("When"), kinds, isTimed ? "time" : "order", (kind) =>
      this.changed({ isTimed: kind === "time", isForAll: false, total: null }, true),
    );
    if (sense !== "distance" && !isTimed) return [order];
    const quantifiers =
      sense === "distance"
        ? ([
            ["exists", t("The closest moment")],
            ["forall", t("The farthest moment")],
          ] as const)
        : ([
            ["exists", t("At some moment")],
            ["forall", t("All the time")],
            ["at_least", t("At least this long in total")],
            ["at_most", t("At most this long in total")],
          ] as const);
    const quantifier = choice(t("How long"), quantifiers, total !== null ? total.bound : isForAll ? "forall" : "exists", (kind) =>
      this.quantified(kind),
    );
    return [...(sense === "distance" ? [] : [order]), quantifier, ...(total === null ? [] : [this.total(total)]), this.window()];
  }

  private quantified(kind: string): void {
    const { total } = this.step;
    const isTotal = kind === "at_least" || kind === "at_most";
    const time = total?.time ?? (this.context.feed.time === "ms" ? "PT5M" : 1000);
    this.changed(
      { isForAll: kind === "forall", total: isTotal ? { bound: kind, time, gap: total?.gap ?? null } : null },
      isTotal !== (total !== null),
    );
  }

  private total(total: Total): HTMLElement {
    const pointer = `/predicates/${this.place}`;
    const { time } = this.context.feed;
    const fields = { time: null as DurationField | null, gap: null as DurationField | null };
    const change = (key: "time" | "gap") => (): void =>
      this.changed({ total: { ...(this.step.total ?? total), [key]: fields[key]?.value() ?? null } });
    fields.time = new DurationField({
      id: `${this.id}-total`,
      label: t("In all"),
      time,
      value: total.time,
      pointer: `${pointer}/${total.bound}`,
      onChange: change("time"),
    });
    fields.gap = new DurationField({
      id: `${this.id}-gap`,
      label: t("A position holds for"),
      time,
      value: total.gap,
      pointer: `${pointer}/gap`,
      hint: t("Empty: until the next one"),
      onChange: change("gap"),
    });
    return h("div", { class: "step-window" }, fields.time.element, fields.gap.element);
  }

  private window(): HTMLElement {
    const { from, to } = this.step;
    const pointer = `/predicates/${this.place}/window`;
    const { time } = this.context.feed;
    const fields = { from: null as DurationField | null, to: null as DurationField | null };
    const change = (end: "from" | "to") => (): void => this.changed({ [end]: fields[end]?.value() ?? null });
    fields.from = new DurationField({
      id: `${this.id}-from`,
      label: t("Between … ago"),
      time,
      value: from,
      pointer: `${pointer}/0`,
      onChange: change("from"),
    });
    fields.to = new DurationField({
      id: `${this.id}-to`,
      label: t("and … ago"),
      time,
      value: to,
      pointer: `${pointer}/1`,
      hint: t("0 is now"),
      onChange: change("to"),
    });
    return h("div", { class: "step-window", "data-pointer": pointer }, fields.from.element, fields.to.element);
  }
}

/** A row of buttons of which one is pressed. */
function choice(
  name: string,
  options: readonly (readonly [string, string])[],
  value: string,
  onChoose: (value: string) => void,
): HTMLElement {
  const buttons = options.map(([one, text]) => {
    const element = h("button", { type: "button", "aria-pressed": String(one === value) }, text);
    element.addEventListener("click", () => {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === element));
      onChoose(one);
    });
    return element;
  });
  return h("div", { class: "segmented", role: "group", "aria-label": name }, ...buttons);
}
