/** The desk's table: only visible rows are rendered, however many there are. */

import { t } from "../lib/texts";
import type { AlertList } from "../data/alert_list";
import { UNATTENDED } from "../data/desk_view";
import type { Alert, Feed } from "../lib/shapes";
import { age, updateAges } from "../lib/ages";
import { h, longName } from "../lib/dom";
import { formatMoment, type Zone } from "../lib/time";
import { kindName, SEVERITY_NAMES, STATE_NAMES } from "../lib/words";

/** Rows rendered beyond the visible ones, so that they are there when the reader scrolls. */
const OVERSCAN = 4;
/** This many rows before the last loaded one, more are fetched. */
const NEAR_END = 16;
/** As in pages.css: rows of a table, and cards on a phone. CSS pixels. */
const ROW_PX = 54;
const CARD_PX = 96;
const COLUMNS = [t("Severity"), t("What"), t("Query"), t("Opened"), t("Event time"), t("State")];
const isNarrow = matchMedia("(max-width: 760px)");

export interface TableHandlers {
  isChosen: (id: string) => boolean;
  choose: (id: string, isOn: boolean) => void;
  open: (id: string) => void;
  /** The reader is near the last loaded row. */
  nearEnd: () => void;
}

export class AlertTableView {
  readonly all = h("input", { type: "checkbox", "aria-label": t("Choose all") });
  private readonly above = spacer();
  private readonly below = spacer();
  private readonly rows = h("tbody", {});
  readonly table = h(
    "table",
    { class: "table alerts-table", "aria-label": t("Alerts") },
    h("thead", {}, h("tr", {}, h("th", { class: "tick" }, this.all), ...COLUMNS.map((text) => h("th", { scope: "col" }, text)))),
    this.rows,
  );
  readonly element = h("div", { class: "desk-scroll", tabindex: -1 }, this.table);
  /** By alert: its row and the data from which it was rendered. */
  private readonly made = new Map<string, { element: HTMLElement; from: string }>();
  private open: string | null = null;
  private drawing = 0;

  constructor(
    private readonly list: AlertList,
    private readonly feeds: readonly Feed[],
    private readonly zone: Zone,
    private readonly handlers: TableHandlers,
  ) {
    this.element.addEventListener("scroll", () => this.drawSoon(), { passive: true });
    new ResizeObserver(() => this.drawSoon()).observe(this.element);
  }

  /** Once per frame, however much changed. */
  drawSoon(open: string | null = this.open): void {
    this.open = open;
    if (this.drawing !== 0) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = 0;
      this.draw();
    });
  }

  /** The row's button, or its checkbox, if the row is visible. */
  focus(id: string, part: "button" | "input" = "button"): void {
    (this.made.get(id)?.element.querySelector<HTMLElement>(part) ?? this.element).focus({ preventScroll: true });
  }

  private focusedPart(): { id: string; part: "button" | "input" } | null {
    const focused = document.activeElement;
    const id = this.rows.contains(focused) ? focused?.closest<HTMLElement>("tr")?.dataset["alert"] : undefined;
    return id === undefined ? null : { id, part: focused instanceof HTMLInputElement ? "input" : "button" };
  }

  get isPointedAt(): boolean {
    return this.rows.matches(":hover");
  }

  /** Scrolls just enough to make the row visible. */
  reveal(id: string): void {
    const at = this.list.indexOf(id);
    if (at < 0) return;
    const height = rowPx();
    const head = this.rows.offsetTop;
    const { scrollTop, clientHeight } = this.element;
    if (at * height < scrollTop) this.element.scrollTop = at * height;
    else if ((at + 1) * height + head > scrollTop + clientHeight) this.element.scrollTop = (at + 1) * height + head - clientHeight;
    this.drawSoon();
  }

  private draw(): void {
    const shown = this.list.shown();
    const height = rowPx();
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / height) - OVERSCAN);
    const stop = Math.min(shown.length, Math.ceil((scrollTop + clientHeight) / height) + OVERSCAN);
    this.table.setAttribute("aria-rowcount", String(shown.length + 1));
    this.above.style.setProperty("--h", `${first * height}px`);
    this.below.style.setProperty("--h", `${(shown.length - stop) * height}px`);
    const elements = [this.above, ...shown.slice(first, stop).map((row, i) => this.rowOf(row, first + i)), this.below];
    const kept = new Set(shown.slice(first, stop).map((row) => row.id));
    for (const one of this.made.keys()) if (!kept.has(one)) this.made.delete(one);
    const focused = this.focusedPart();
    // Unchanged rows are not replaced, so that focus and pointer keep their element.
    place(this.rows, elements);
    updateAges(this.rows);
    if (focused !== null && !this.rows.contains(document.activeElement)) this.focus(focused.id, focused.part);
    if (stop > shown.length - NEAR_END) this.handlers.nearEnd();
  }

  private rowOf(row: Alert, at: number): HTMLElement {
    const from = JSON.stringify([row, this.handlers.isChosen(row.id), row.id === this.open]);
    const known = this.made.get(row.id);
    const element = known?.from === from ? known.element : this.rowElement(row);
    element.setAttribute("aria-rowindex", String(at + 2));
    this.made.set(row.id, { element, from });
    return element;
  }

  private rowElement(row: Alert): HTMLElement {
    const what = [...new Set(row.entities)].join(", ") || kindName(row.kind);
    const box = h("input", { type: "checkbox", checked: this.handlers.isChosen(row.id), "aria-label": t("Choose {what}", { what }) });
    box.addEventListener("change", () => this.handlers.choose(row.id, box.checked));
    const unit = this.feeds.find((one) => one.name === row.feed)?.time ?? "ms";
    return h(
      "tr",
      {
        class: "clickable",
        "data-alert": row.id,
        "aria-selected": String(row.id === this.open),
        onClick: (event) => {
          if (!(event.target instanceof Element && event.target.closest("label"))) this.handlers.open(row.id);
        },
      },
      h("td", { class: "tick" }, h("label", {}, box)),
      h("td", {}, h("span", { class: `badge badge-dot badge-${row.severity}` }, SEVERITY_NAMES[row.severity])),
      h(
        "td",
        {},
        h(
          "button",
          { type: "button", class: "query-name", "aria-label": what, onClick: () => this.handlers.open(row.id) },
          longName("span", what),
        ),
        row.entities.length === 0 ? null : h("div", { class: "small muted truncate" }, kindName(row.kind)),
      ),
      h("td", {}, h("div", { class: "truncate alert-query", title: row.query_name }, row.query_name)),
      h("td", { class: "nowrap num" }, age(row.opened_at)),
      h("td", { class: "nowrap num small faint" }, formatMoment(row.start, unit, this.zone)),
      h("td", { class: "nowrap" }, ...stateOf(row)),
    );
  }
}

/** The state as text, with the assignee, and whether its answer has ended. */
function stateOf(row: Alert): HTMLElement[] {
  const kind = row.state === "resolved" ? "badge-good" : UNATTENDED.includes(row.state) ? "badge-accent" : "";
  const who =
    row.state === "assigned"
      ? t("to {person}", { person: row.assignee ?? t("someone") })
      : row.state === "acknowledged"
        ? row.acknowledged_by
        : row.state === "resolved"
          ? row.resolved_by
          : null;
  const below = [row.muted ? t("muted") : null, who, row.over_at !== null && row.state !== "resolved" ? t("ended by itself") : null].filter(
    (text) => text !== null,
  );
  return [
    h("span", { class: `badge ${kind}` }, STATE_NAMES[row.state]),
    ...(below.length === 0 ? [] : [h("div", { class: "small faint truncate" }, below.join(" · "))]),
  ];
}

function rowPx(): number {
  return isNarrow.matches ? CARD_PX : ROW_PX;
}

/**
 * Sets the children in this order. Those in place are not touched: the browser lays
 * out moved elements again.
 */
function place(parent: HTMLElement, children: readonly HTMLElement[]): void {
  const kept = new Set<Element>(children);
  for (const one of [...parent.children]) if (!kept.has(one)) one.remove();
  let next = parent.firstElementChild;
  for (const one of children) {
    if (one === next) next = next.nextElementSibling;
    else parent.insertBefore(one, next);
  }
}

function spacer(): HTMLElement {
  return h("tr", { class: "spacer", "aria-hidden": "true" }, h("td", {}));
}
