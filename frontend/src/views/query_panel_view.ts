/** The queries of the feed next to the map: colour, count, shown or not. */

import { t } from "../lib/texts";
import type { CatchingUp } from "../live/frames";
import type { QueryRow } from "../lib/shapes";
import { button, empty, h, icon, iconButton, linkButton, replace } from "../lib/dom";
import { queryColour } from "../lib/colours";
import { formatNumber } from "../lib/time";
import { familyName, inSentence, SEVERITY_NAMES } from "../lib/words";

export interface QueryPanelHandlers {
  onHidden: (hidden: Set<string>) => void;
  onFocus: (query: QueryRow) => void;
  onHover: (query: QueryRow | null) => void;
  onClose: () => void;
  newQueryUrl: () => string;
  /** Shown below the list. */
  below: HTMLElement;
}

interface Entry {
  element: HTMLElement;
  box: HTMLInputElement;
  state: HTMLElement;
  count: HTMLElement;
  swatchOf: HTMLElement;
}

export class QueryPanelView {
  readonly element: HTMLElement;
  private readonly list = h("ul", { class: "query-list", "aria-label": t("Queries on this feed") });
  private readonly filter = h("input", {
    class: "input input-sm",
    type: "search",
    placeholder: t("Filter queries"),
    "aria-label": t("Filter queries"),
    onInput: () => this.applyFilter(),
  });
  private readonly filterRow = h("div", { class: "filters" });
  private readonly chips = h("div", { class: "filters" });
  private entries = new Map<string, Entry>();
  private queries: QueryRow[] = [];
  private hidden = new Set<string>();
  private readonly all: HTMLButtonElement;

  constructor(private readonly handlers: QueryPanelHandlers) {
    this.all = button(t("Hide all"), { kind: "button-quiet button-sm", onClick: () => this.toggleAll() });
    this.filterRow.append(this.filter);
    this.list.addEventListener("keydown", (event) => this.moveFocus(event));
    this.list.addEventListener("focusin", (event) => this.keepStop(event.target));
    this.element = h(
      "aside",
      { class: "live-side", "aria-label": t("Queries") },
      h(
        "div",
        { class: "side-head" },
        h("h2", {}, t("Queries")),
        this.all,
        iconButton(t("Close the panel"), "chevron-left", { kind: "button-quiet button-sm", onClick: handlers.onClose }),
      ),
      this.filterRow,
      this.chips,
      this.list,
      handlers.below,
      h(
        "div",
        { class: "drawer-foot" },
        h("a", { class: "button button-primary grow", href: handlers.newQueryUrl() }, icon("plus"), t("New query")),
      ),
    );
  }

  setQueries(queries: QueryRow[], hidden: Iterable<string>): void {
    this.queries = queries;
    this.hidden = new Set(hidden);
    this.filterRow.hidden = queries.length < 9;
    this.entries = new Map(queries.map((query) => [query.id, this.entry(query)]));
    replace(this.list, ...[...this.entries.values()].map((entry) => entry.element));
    if (queries.length === 0) {
      replace(
        this.list,
        h(
          "li",
          {},
          empty(
            "waypoints",
            t("No queries yet"),
            t("Draw a region and ask when something enters it, leaves it or stays too long."),
            linkButton(t("Register the first one"), this.handlers.newQueryUrl(), "plus", "button-primary"),
          ),
        ),
      );
    }
    this.keepStop(null);
    this.showState();
  }

  /**
   * The list is one tab stop: the entry that had the focus last, else the first.
   * Arrow keys move within it.
   */
  private keepStop(target: EventTarget | null): void {
    const entries = [...this.entries.values()];
    const current = entries.find(({ element }) => target instanceof Node && element.contains(target)) ?? entries[0];
    for (const { element } of entries)
      for (const control of element.querySelectorAll<HTMLElement>("input, button"))
        control.tabIndex = element === current?.element ? 0 : -1;
  }

  private moveFocus(event: KeyboardEvent): void {
    const shown = [...this.entries.values()].filter(({ element }) => !element.hidden);
    const at = shown.findIndex(({ element }) => event.target instanceof Node && element.contains(event.target));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1 }[event.key];
    const next = to === undefined || at < 0 ? undefined : shown[to];
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const isBox = event.target instanceof HTMLInputElement;
    next.element.querySelector<HTMLElement>(isBox ? "input" : "button")?.focus();
  }

  /** Chips for the entities by which everything is filtered. */
  setEntities(entities: readonly string[], onRemove: (entity: string) => void, onClear: () => void): void {
    const chips = entities
      .slice(0, 6)
      .map((entity) =>
        h(
          "span",
          { class: "chip" },
          h("span", { class: "truncate" }, entity),
          h("button", { type: "button", "aria-label": t("Remove {entity}", { entity }), onClick: () => onRemove(entity) }, icon("x")),
        ),
      );
    const more = entities.length > 6 ? h("span", { class: "chip" }, t("{value} more", { value: entities.length - 6 })) : null;
    replace(
      this.chips,
      ...chips,
      more,
      entities.length > 1 ? button(t("Clear"), { kind: "button-quiet button-sm", onClick: onClear }) : null,
    );
  }

  /** `isLive`: open answers are those of now, else of the instant shown. */
  setCounts(counts: ReadonlyMap<string, { total: number; open: number }>, isLive: boolean): void {
    for (const [id, entry] of this.entries) {
      const { total, open } = counts.get(id) ?? { total: 0, open: 0 };
      const text = total === 0 ? "–" : formatNumber(total);
      const shown = `${text}|${open}|${isLive}`;
      if (entry.count.dataset["text"] === shown) continue;
      entry.count.dataset["text"] = shown;
      replace(
        entry.count,
        h("div", {}, text),
        open > 0
          ? h(
              "div",
              { class: "query-meta" },
              isLive ? t("{count} now", { count: formatNumber(open) }) : t("{count} then", { count: formatNumber(open) }),
            )
          : null,
      );
    }
  }

  /** Queries that still read the history say how far they are. */
  setCatchingUp(progress: CatchingUp | null): void {
    const reading = new Set(progress?.queries);
    for (const query of this.queries) {
      const text = progress !== null && reading.has(query.id) ? historyText(progress) : stateText(query);
      const { state } = this.entries.get(query.id)!;
      if (state.textContent !== text) state.textContent = text;
    }
  }

  private entry(query: QueryRow): Entry {
    const box = h("input", {
      type: "checkbox",
      checked: !this.hidden.has(query.id),
      "aria-label": t("Show {name}", { name: query.name }),
      onChange: (): void => this.toggle(query.id, box.checked),
    });
    const count = h("div", { class: "query-count" });
    const state = h("span", {}, stateText(query));
    const swatchOf = h(
      "li",
      {
        class: `query-item${query.enabled ? "" : " dim"}`,
        vars: { "--swatch": queryColour(query.id) },
        onMouseenter: () => this.handlers.onHover(query),
        onMouseleave: () => this.handlers.onHover(null),
      },
      box,
      h(
        "div",
        { class: "grow" },
        h(
          "button",
          { type: "button", class: "query-name", title: query.sentence, onClick: () => this.handlers.onFocus(query) },
          query.name,
        ),
        h(
          "div",
          { class: "query-meta" },
          state,
          query.severity === "high" || query.severity === "critical"
            ? h("span", { class: `badge badge-${query.severity}` }, inSentence(SEVERITY_NAMES[query.severity]))
            : null,
        ),
      ),
      count,
    );
    return { element: swatchOf, box, state, count, swatchOf };
  }

  private toggle(id: string, isShown: boolean): void {
    if (isShown) this.hidden.delete(id);
    else this.hidden.add(id);
    this.showState();
    this.handlers.onHidden(this.hidden);
  }

  private toggleAll(): void {
    this.hidden = this.hidden.size > 0 ? new Set() : new Set(this.queries.map((query) => query.id));
    for (const [id, entry] of this.entries) entry.box.checked = !this.hidden.has(id);
    this.showState();
    this.handlers.onHidden(this.hidden);
  }

  private showState(): void {
    this.all.textContent = this.hidden.size > 0 ? t("Show all") : t("Hide all");
    this.all.hidden = this.queries.length === 0;
    for (const [id, entry] of this.entries) entry.element.classList.toggle("dim", this.hidden.has(id));
  }

  private applyFilter(): void {
    const wanted = this.filter.value.trim().toLowerCase();
    for (const query of this.queries) this.entries.get(query.id)!.element.hidden = !query.name.toLowerCase().includes(wanted);
  }

  themeChanged(): void {
    for (const [id, entry] of this.entries) entry.swatchOf.style.setProperty("--swatch", queryColour(id));
  }
}

function stateText({ enabled, stopped, family }: QueryRow): string {
  if (!enabled) return t("Switched off");
  return stopped === null ? familyName(family) : t("Stopped: {reason}", { reason: stopped.reason });
}

/** How far new queries have read the history. */
export function historyText({ read, rows }: CatchingUp): string {
  return t("Reading the history: {percent} %", { percent: Math.floor((100 * read) / Math.max(rows, 1)) });
}
