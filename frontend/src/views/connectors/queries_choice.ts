/** A choice of a feed's queries by name: all of them including future ones, or some. */

import { h, replace } from "../../lib/dom";
import { chosenQueries, queriesText, queriesWords } from "../../data/connector_data";
import type { QueryRow } from "../../lib/shapes";
import { fail } from "../shell_view";
import { t } from "../../lib/texts";

export class QueriesChoice {
  readonly element: HTMLElement;
  private readonly chosen: Set<string>;
  private rows: readonly QueryRow[] | null = null;
  private readonly some: HTMLInputElement;
  private readonly search: HTMLInputElement;
  private readonly list = h("div", { class: "queries-choice", role: "group", "aria-label": t("Queries") });
  private readonly count = h("span", { class: "hint", role: "status" });
  private readonly box: HTMLElement;

  constructor(id: string, value: string, queries: Promise<QueryRow[]>) {
    this.chosen = new Set(chosenQueries(value));
    this.some = h("input", { type: "radio", name: id, id: `${id}-some`, checked: this.chosen.size > 0 });
    const all = h("input", { type: "radio", name: id, id: `${id}-all`, checked: this.chosen.size === 0 });
    this.search = h("input", {
      type: "search",
      class: "input",
      id: `${id}-search`,
      placeholder: t("Find a query by its name"),
      "aria-label": t("Find a query by its name"),
      autocomplete: "off",
    });
    this.box = h("div", { class: "stack" }, this.search, this.list, this.count);
    this.element = h(
      "fieldset",
      { class: "stack" },
      h("legend", {}, t("Answers of")),
      h("label", { class: "check" }, all, t("All queries of the feed, including new ones")),
      h("label", { class: "check" }, this.some, t("Some queries")),
      this.box,
    );
    for (const one of [all, this.some]) one.addEventListener("change", () => this.show());
    this.search.addEventListener("input", () => this.show());
    queries.then((rows) => {
      this.rows = rows;
      this.show();
    }, fail);
    this.show();
  }

  /** In the form of the API: empty for all. */
  value(): string {
    return this.some.checked ? queriesText(this.chosen) : "";
  }

  /** An empty choice would mean all. */
  fault(): string {
    return this.some.checked && this.chosen.size === 0 ? queriesWords(0) : "";
  }

  private show(): void {
    this.box.hidden = !this.some.checked;
    if (this.rows === null) {
      replace(this.list, h("span", { class: "hint" }, t("Looking for the feed's queries ...")));
      return;
    }
    // Chosen queries that were removed or are hidden now can be unchosen.
    const gone = [...this.chosen]
      .filter((id) => !this.rows!.some((row) => row.id === id))
      .map((id) => ({ id, name: t("Query {id}, removed", { id }) }));
    const sought = this.search.value.trim().toLowerCase();
    const shown = [...this.rows, ...gone].filter(({ name }) => name.toLowerCase().includes(sought));
    const nothing = this.rows.length === 0 ? t("The feed has no queries yet.") : t("No query has this name.");
    replace(this.list, ...(shown.length === 0 ? [h("span", { class: "hint" }, nothing)] : shown.map((row) => this.item(row))));
    this.count.textContent = queriesWords(this.chosen.size);
  }

  private item({ id, name }: Pick<QueryRow, "id" | "name">): HTMLElement {
    const box = h("input", { type: "checkbox", checked: this.chosen.has(id) });
    box.addEventListener("change", () => {
      if (box.checked) this.chosen.add(id);
      else this.chosen.delete(id);
      this.count.textContent = queriesWords(this.chosen.size);
    });
    return h("label", { class: "check" }, box, name);
  }
}
