/** The steps in order, moved by dragging, by buttons, and by Alt with the arrow keys. */

import { button, h, replace } from "../../../lib/dom";
import { moved, newStep, placeBefore, type MotionStep } from "../../../data/motion_data";
import type { EditorContext, MapShape } from "../editor";
import { StepCard } from "./step_card";
import { t } from "../../../lib/texts";

/** From a specification. */
const MOST = 64;

export interface TrackHandlers {
  onChange: () => void;
  /** The shapes changed; `fit`: the map should move to them. */
  onShapes: (fit: boolean) => void;
}

export class TrackView {
  readonly element = h("div", { class: "stack" });
  private cards: StepCard[] = [];
  private readonly list = h("ol", { class: "track", "data-pointer": "/predicates" });
  private readonly announcement = h("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  private active: number | null;
  private dragged: number | null = null;

  constructor(
    private readonly entries: { steps: MotionStep[] },
    private readonly context: EditorContext,
    private readonly handlers: TrackHandlers,
  ) {
    this.active = entries.steps[0]?.id ?? null;
    const add = button(t("Add a step"), { icon: "plus", id: "add-step", onClick: () => this.add() });
    const hint = h(
      "span",
      { class: "small faint" },
      t("Move a step by dragging it, or with "),
      h("kbd", {}, "Alt"),
      " ",
      h("kbd", {}, "↑"),
      " ",
      h("kbd", {}, "↓"),
    );
    replace(this.element, this.list, h("div", { class: "row row-wrap" }, add, hint), this.announcement);
    this.list.addEventListener("keydown", (event) => this.pressed(event));
    this.list.addEventListener("dragover", (event) => this.over(event));
    this.list.addEventListener("drop", (event) => this.dropped(event));
    this.list.addEventListener("dragend", () => this.ended());
    this.render();
  }

  shapes(): MapShape[] {
    return this.cards.flatMap((card) => card.shapes());
  }

  private render(): void {
    const { steps } = this.entries;
    this.context.map.stop();
    this.cards = steps.map((step, i) => new StepCard(steps, i, step.id === this.active, this.context, this.handlersOf(step)));
    replace(this.list, ...this.cards.map((card, i) => this.item(card, i)));
  }

  private item(card: StepCard, i: number): HTMLElement {
    const { steps } = this.entries;
    const step = steps[i]!;
    const follows = placeBefore(steps, i) !== null;
    const link = i === 0 ? "" : follows ? t("then") : t("and");
    const item = h(
      "li",
      { class: `step${follows ? " follows" : ""}` },
      h("div", { class: "step-rail" }, h("span", { class: "step-link" }, link), h("span", { class: "step-number num" }, i + 1)),
      card.element,
    );
    item.addEventListener("dragstart", (event) => {
      this.dragged = step.id;
      item.classList.add("dragged");
      event.dataTransfer?.setData("text/plain", String(i + 1));
      if (event.dataTransfer !== null) event.dataTransfer.effectAllowed = "move";
    });
    return item;
  }

  private handlersOf(step: MotionStep): ConstructorParameters<typeof StepCard>[4] {
    return {
      onChange: (isOther) => {
        if (isOther) this.rendered();
        this.handlers.onChange();
      },
      onPlace: (isElsewhere) => this.handlers.onShapes(isElsewhere),
      onActivate: () => {
        this.active = this.active === step.id ? null : step.id;
        this.renderedAt(step, "title");
      },
      onMove: (by) => this.move(step, this.entries.steps.indexOf(step) + by, by < 0 ? "up" : "down"),
      onRemove: () => this.remove(step),
    };
  }

  private rendered(): void {
    this.render();
    this.handlers.onShapes(false);
  }

  private renderedAt(step: MotionStep, part: Parameters<StepCard["focus"]>[0]): void {
    this.rendered();
    this.cards[this.entries.steps.indexOf(step)]?.focus(part);
  }

  private add(): void {
    const step = newStep(this.context.feed, this.entries.steps.at(-1)?.isTimed === true);
    this.entries.steps = [...this.entries.steps, step].slice(0, MOST);
    this.active = step.id;
    this.renderedAt(step, "title");
    this.handlers.onChange();
  }

  private remove(step: MotionStep): void {
    const i = this.entries.steps.indexOf(step);
    this.entries.steps = this.entries.steps.filter((one) => one !== step);
    const next = this.entries.steps[Math.min(i, this.entries.steps.length - 1)];
    if (this.active === step.id) this.active = next?.id ?? null;
    this.announcement.textContent = t("Step {i} is removed.", { i: i + 1 });
    if (next !== undefined) this.renderedAt(next, "title");
    this.handlers.onChange();
  }

  private move(step: MotionStep, to: number, part: Parameters<StepCard["focus"]>[0]): void {
    if (to < 0 || to >= this.entries.steps.length) return;
    this.entries.steps = moved(this.entries.steps, step.id, to);
    this.renderedAt(step, part);
    this.announcement.textContent = t("It is step {to} of {count} now.", { to: to + 1, count: this.entries.steps.length });
    this.handlers.onChange();
  }

  // ---- Keyboard and dragging

  private pressed(event: KeyboardEvent): void {
    if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
    const step = this.stepAt(event.target);
    if (step === undefined) return;
    event.preventDefault();
    this.move(step, this.entries.steps.indexOf(step) + (event.key === "ArrowUp" ? -1 : 1), "title");
  }

  private stepAt(target: EventTarget | null): MotionStep | undefined {
    const card = target instanceof Element ? target.closest(".step")?.querySelector<HTMLElement>("[data-step]") : null;
    return this.entries.steps.find((one) => String(one.id) === card?.dataset["step"]);
  }

  private over(event: DragEvent): void {
    if (this.dragged === null) return;
    event.preventDefault();
    for (const item of this.list.children) item.classList.toggle("drop-here", item === this.itemAt(event));
  }

  private itemAt(event: DragEvent): Element | null {
    return event.target instanceof Element ? event.target.closest(".step") : null;
  }

  private dropped(event: DragEvent): void {
    const over = this.stepAt(event.target);
    const step = this.entries.steps.find((one) => one.id === this.dragged);
    if (over === undefined || step === undefined) return;
    event.preventDefault();
    this.move(step, this.entries.steps.indexOf(over), "title");
    this.ended();
  }

  private ended(): void {
    this.dragged = null;
    for (const item of this.list.children) item.classList.remove("drop-here", "dragged");
  }
}
