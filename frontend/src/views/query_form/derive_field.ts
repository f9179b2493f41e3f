/**
 * Answers of other queries as events of this one: which query, which of its
 * answers, and the event's name.
 */

import {
  columnsWords,
  freshEvent,
  giverOf,
  givers,
  MOMENTS,
  readDerive,
  writtenDerive,
  type DerivedEvent,
  type Moment,
} from "../../data/derive_data";
import { queryRow, type Feed, type QueryRow } from "../../lib/shapes";
import { getAll, query as address } from "../../lib/api";
import { button, h, iconButton, replace } from "../../lib/dom";
import { kindName } from "../../lib/words";
import { fail } from "../shell_view";
import { t } from "../../lib/texts";

const MOST_QUERIES = 5000;
const MOMENT_TEXTS: Record<Moment, string> = { start: t("when the answer begins"), end: t("when the answer ends") };

export interface DeriveOptions {
  feed: Feed;
  /** The stored query that is being edited; null for a new one. */
  own: string | null;
  /** The family of the query that takes the answers. */
  family: string;
  /**
   * From the document; if it has no event (a stored document has at least
   * one), the first is added here.
   */
  value: unknown;
  /**
   * `isOther`: the first event was added or the last removed, so that the feed has
   * other columns for this query.
   */
  onChange: (isOther: boolean) => void;
  /**
   * The first event was added automatically: the feed has other columns, and the
   * reader has changed nothing.
   */
  onProposal: () => void;
}

/**
 * Kinds of answers to choose from; a kind that the query does not give stays
 * visible until another is chosen.
 */
function kindsOf(giver: QueryRow | undefined, { kind }: DerivedEvent): readonly string[] {
  const given = giver?.kinds ?? [];
  return given.includes(kind) ? given : [kind, ...given];
}

const kindText = (kind: string): string => (kind === "" ? "…" : kindName(kind));

export class DeriveField {
  readonly element: HTMLElement;
  private events: DerivedEvent[];
  private rows: QueryRow[] | null = null;
  private readonly list = h("div", { class: "stack" });
  private readonly names = h("datalist", { id: "derive-queries" });

  constructor(private readonly options: DeriveOptions) {
    this.events = readDerive(options.value);
    const isAsked = options.value !== undefined;
    const details = h(
      "details",
      { class: "more", open: isAsked },
      h("summary", {}, t("Answers of other queries as events")),
      h(
        "div",
        { class: "stack more-body" },
        h(
          "p",
          { class: "small muted" },
          t("Each answer of another query of this feed is an event of this one. Conditions name it: event = its name."),
        ),
        this.list,
        this.names,
      ),
    );
    details.addEventListener("toggle", () => {
      if (details.open) void this.load();
    });
    this.element = h("section", { class: "form-section", "data-pointer": "/derive" }, details);
    this.render();
    if (isAsked) void this.load().then(() => this.begin());
  }

  /** In the form of the specification; null without events. */
  value(): Record<string, unknown> | null {
    return writtenDerive(this.events);
  }

  private async load(): Promise<void> {
    if (this.rows !== null) return;
    const { feed, own, family } = this.options;
    this.rows = [];
    try {
      this.rows = givers(await getAll(address("queries/", { feed: feed.name, page_size: 1000 }), queryRow, MOST_QUERIES), own, family);
    } catch (error) {
      this.rows = null;
      fail(error);
    }
    replace(this.names, ...(this.rows ?? []).map((row) => h("option", { value: row.name })));
    this.render();
  }

  private remove(entry: DerivedEvent): void {
    this.events = this.events.filter((one) => one !== entry);
    this.render();
    this.options.onChange(this.events.length === 0);
  }

  /** The first event is added automatically, without moving the focus. */
  private begin(): void {
    if (this.events.length > 0 || this.rows === null || this.rows.length === 0) return;
    this.events = [freshEvent(this.rows[0], [])];
    this.render();
    this.options.onProposal();
  }

  private add(rows: readonly QueryRow[]): void {
    const at = this.events.length;
    this.events = [...this.events, freshEvent(rows[0], this.events)];
    this.render();
    this.list.querySelector<HTMLElement>(`#derive-query-${at}`)?.focus();
    this.options.onChange(at === 0);
  }

  private changed(entry: DerivedEvent, change: Partial<DerivedEvent>): void {
    Object.assign(entry, change);
    this.options.onChange(false);
  }

  private render(): void {
    const rows = this.rows ?? [];
    const add = button(t("Add answers as events"), {
      icon: "plus",
      kind: "button-sm",
      id: "add-derived",
      disabled: rows.length === 0,
      onClick: () => this.add(rows),
    });
    const none =
      this.rows !== null && rows.length === 0
        ? h("p", { class: "small muted" }, t("This feed has no other query whose answers can be events."))
        : null;
    replace(this.list, ...this.events.map((entry, i) => this.row(entry, i, rows)), none, h("div", {}, add));
  }

  /**
   * The fields of one event. They are not rebuilt when one of them changes: the reader
   * may be moving to the next.
   */
  private row(entry: DerivedEvent, i: number, rows: readonly QueryRow[]): HTMLElement {
    const query = h("input", {
      class: "input",
      id: `derive-query-${i}`,
      list: "derive-queries",
      value: entry.query,
      placeholder: t("Name of a query"),
      autocomplete: "off",
    });
    query.addEventListener("change", () => {
      const found = giverOf(rows, query.value.trim());
      const kind = found === undefined || found.kinds.includes(entry.kind) ? entry.kind : (found.kinds[0] ?? "");
      this.changed(entry, { query: query.value.trim(), kind });
      say();
    });
    const kind = h("select", { class: "select", id: `derive-kind-${i}`, "aria-label": t("Which answers") });
    kind.addEventListener("change", () => this.changed(entry, { kind: kind.value }));
    const at = h(
      "select",
      { class: "select", id: `derive-at-${i}`, "aria-label": t("When") },
      ...MOMENTS.map((one) => h("option", { value: one, selected: one === entry.at }, MOMENT_TEXTS[one])),
    );
    at.addEventListener("change", () => this.changed(entry, { at: at.value as Moment }));
    const event = h("input", {
      class: "input mono",
      id: `derive-event-${i}`,
      value: entry.event,
      autocomplete: "off",
      spellcheck: "false",
    });
    event.addEventListener("change", () => {
      this.changed(entry, { event: event.value.trim() });
      say();
    });
    const field = (label: string, control: HTMLElement): HTMLElement =>
      h("div", { class: "field" }, h("label", { for: control.id }, label), control);
    const fields = {
      query: field(t("Answers of"), query),
      kind: field(t("Which"), kind),
      at: field(t("The event is"), at),
      "": field(t("Called"), event),
    };
    const drop = iconButton(t("Remove the event"), "trash-2", { kind: "button-quiet button-sm", onClick: () => this.remove(entry) });
    const hint = h("p", { class: "hint" });
    const group = h(
      "div",
      { class: "derived", role: "group" },
      fields.query,
      h("div", { class: "pair" }, fields.kind, fields.at),
      h("div", { class: "row derived-name" }, fields[""], drop),
      hint,
    );
    /** The parts that depend on the chosen query and the event's name. */
    const say = (): void => {
      const giver = giverOf(rows, entry.query);
      replace(kind, ...kindsOf(giver, entry).map((one) => h("option", { value: one, selected: one === entry.kind }, kindText(one))));
      const pointer = `/derive/${entry.event.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      for (const [part, place] of Object.entries(fields)) place.dataset["pointer"] = part === "" ? pointer : `${pointer}/${part}`;
      group.ariaLabel = t("Event {event}", { event: entry.event });
      drop.ariaLabel = drop.title = t("Remove the event {event}", { event: entry.event });
      hint.textContent = `${entry.event}: ${columnsWords(giver)}.`;
    };
    say();
    return group;
  }
}
