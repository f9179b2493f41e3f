/**
 * Search over entities, queries and regions: "/" focuses it, arrows select,
 * Enter goes to the result.
 */

import { t } from "../lib/texts";
import { h, icon, replace } from "../lib/dom";
import { Latest } from "../lib/latest";

export interface Found {
  kind: "entity" | "query" | "region";
  id: string;
  name: string;
}

export interface SearchSources {
  /** Results known to the page. */
  find: (text: string) => Found[];
  /** Further results of the server, shown below. */
  ask: (text: string, signal: AbortSignal) => Promise<Found[]>;
  onPick: (found: Found) => void;
  onFault: (error: unknown) => void;
}

/** Nothing is requested while the reader is typing. */
const TYPING_MS = 150;
const ICONS = { entity: "crosshair", query: "waypoints", region: "shapes" };
const NAMES = { entity: t("Entity"), query: t("Query"), region: t("Region") };

export class SearchView {
  readonly element: HTMLElement;
  private readonly input = h("input", {
    class: "input",
    type: "search",
    placeholder: t("Find entity, query, region"),
    "aria-label": t("Find entity, query or region"),
    role: "combobox",
    "aria-expanded": "false",
    "aria-controls": "search-menu",
    autocomplete: "off",
  });
  private readonly menu = h("div", { class: "menu", id: "search-menu", role: "listbox", hidden: true });
  private found: Found[] = [];
  private at = 0;
  private readonly question: Latest<[text: string]>;

  constructor(private readonly sources: SearchSources) {
    this.question = new Latest((signal, text) => this.ask(text, signal), sources.onFault);
    this.element = h("div", { class: "search", role: "search" }, icon("search"), this.input, h("kbd", {}, "/"), this.menu);
    this.input.addEventListener("input", () => this.refresh());
    this.input.addEventListener("focus", () => this.refresh());
    this.input.addEventListener("blur", () => setTimeout(() => this.hide(), 120));
    this.input.addEventListener("keydown", (event) => this.key(event));
  }

  focus(): void {
    this.input.focus();
    this.input.select();
  }

  private refresh(): void {
    const text = this.input.value.trim();
    this.found = text === "" ? [] : this.sources.find(text);
    this.at = 0;
    this.show(text);
    if (text === "") this.question.drop();
    else this.question.after(TYPING_MS, text);
  }

  private async ask(text: string, signal: AbortSignal): Promise<void> {
    const more = await this.sources.ask(text, signal);
    if (signal.aborted || this.menu.hidden) return;
    const known = new Set(this.found.map(({ kind, id }) => `${kind} ${id}`));
    this.found = [...this.found, ...more.filter(({ kind, id }) => !known.has(`${kind} ${id}`))];
    this.show(text);
  }

  private show(text: string): void {
    this.menu.hidden = text === "";
    this.input.setAttribute("aria-expanded", String(text !== ""));
    this.menu.style.left = "0";
    this.menu.style.right = "0";
    this.menu.style.top = "38px";
    const items = this.found.map((item, i) =>
      h(
        "button",
        {
          type: "button",
          tabindex: -1,
          role: "option",
          id: `found-${i}`,
          class: "menu-item",
          "aria-selected": String(i === this.at),
          onPointerdown: (event) => {
            event.preventDefault();
            this.pick(item);
          },
        },
        icon(ICONS[item.kind]),
        h("span", { class: "truncate" }, item.name),
        h("span", { class: "hint" }, NAMES[item.kind]),
      ),
    );
    replace(
      this.menu,
      ...(items.length > 0 ? items : [h("p", { class: "menu-item faint" }, t("Nothing called “{text}” here.", { text }))]),
    );
    if (this.found.length > 0) this.input.setAttribute("aria-activedescendant", `found-${this.at}`);
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      this.input.value = "";
      this.hide();
      this.input.blur();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (this.found.length === 0) return;
      this.at = (this.at + (event.key === "ArrowDown" ? 1 : -1) + this.found.length) % this.found.length;
      this.show(this.input.value.trim());
    } else if (event.key === "Enter") {
      const item = this.found[this.at];
      if (item !== undefined) this.pick(item);
    }
  }

  private pick(item: Found): void {
    this.input.value = "";
    this.hide();
    this.input.blur();
    this.sources.onPick(item);
  }

  private hide(): void {
    this.question.drop();
    this.menu.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}
