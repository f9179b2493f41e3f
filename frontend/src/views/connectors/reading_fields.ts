/** How the columns of a stream's records are mapped. */

import { h, replace } from "../../lib/dom";
import { readingOf, type Trial } from "../../data/connector_data";
import { CRS_CHOICES, isInOne, PLACE_FORMATS, TIME_FORMATS } from "../../data/upload_data";
import type { FeedStatus } from "../../lib/shapes";
import { choice, field } from "../form_parts";
import { t } from "../../lib/texts";

type Choices = readonly (readonly [string, string])[];
const DECIMALS: Choices = [
  [".", t("Point")],
  [",", t("Comma")],
];
const OTHER = "other";
const CRS: Choices = CRS_CHOICES.filter(([value]) => value !== "utm");

/** Empty: their names are those of the feed. */
export class ReadingFields {
  readonly element: HTMLElement;
  private readonly columns: string[];
  private readonly texts = new Map<string, HTMLInputElement>();
  private readonly choices = new Map<string, HTMLSelectElement>();
  private readonly code = h("input", { class: "input num", id: "reading-code", inputmode: "numeric", maxlength: 6, autocomplete: "off" });
  private readonly codeField = field("reading/crs", t("EPSG code"), this.code, t("UTM zone 32 north is 32632, for example."));
  private readonly zoneField: HTMLElement;
  private readonly yField = field("reading/y", t("y or latitude"), this.text("y"));
  private readonly known = h("datalist", { id: "connector-columns" });
  /** The values that the last test filled in, in the form of `filled`; null: none. */
  private guessed: string | null = null;

  constructor(feed: FeedStatus, current: Record<string, unknown>) {
    this.columns = Object.entries(feed.columns).map(([name, type]) => `${name}:${type}`);
    const zones: Choices = ["UTC", ...Intl.supportedValuesOf("timeZone").filter((one) => one !== "UTC")].map((one) => [one, one]);
    this.zoneField = field("reading/zone", t("Time zone of times that name none"), this.choose("zone", zones, "UTC"));
    this.element = h(
      "fieldset",
      { class: "stack" },
      h("legend", {}, t("What the columns of a record mean")),
      h(
        "p",
        { class: "small muted" },
        t("Leave all empty when records have entity, t, x, y and the feed's own columns. Test fills in a guess."),
      ),
      field(
        "reading/entity",
        t("Entity"),
        this.text("entity"),
        t("The column that names the thing. Of two columns, with a comma between: both together."),
      ),
      field("reading/time", t("Time"), this.text("time"), t("received is the time at which a record came.")),
      field(
        "reading/time_format",
        t("Times are written as"),
        this.choose("time_format", TIME_FORMATS, feed.time === "ticks" ? "ticks" : "iso"),
      ),
      this.zoneField,
      field("reading/place_format", t("Places are written as"), this.choose("place_format", PLACE_FORMATS, "numbers")),
      field("reading/x", t("x or longitude"), this.text("x"), t("Or the one column of the place.")),
      this.yField,
      field("reading/crs", t("Places are"), this.choose("crs", CRS, feed.crs === "planar" ? "plane" : "EPSG:4326")),
      this.codeField,
      field("reading/decimal", t("Decimal separator"), this.choose("decimal", DECIMALS, ".")),
      field("reading/event", t("Event"), this.text("event"), t("The column that names the event. Empty: all records are positions.")),
      ...Object.keys(feed.columns).map((name) => field("reading/attributes", t("Column {name}", { name }), this.text(`attribute ${name}`))),
      this.known,
    );
    this.element.addEventListener("change", () => this.showApplying());
    this.show(current);
  }

  /**
   * Without values that a test filled in and nobody changed since: the next test guesses again from
   * new records.
   */
  chosen(): Record<string, unknown> {
    return this.filled() === this.guessed ? {} : this.value();
  }

  value(): Record<string, unknown> {
    const given = Object.fromEntries([...this.texts, ...this.choices].map(([name, one]) => [name, one.value]));
    if (given["crs"] === OTHER) given["crs"] = `EPSG:${this.code.value.trim()}`;
    return readingOf(given, this.columns);
  }

  /** The result of a test: columns to choose from and, without a choice, a guess. */
  offer(found: Trial): void {
    replace(this.known, ...found.columns.map((value) => h("option", { value })));
    if (Object.keys(this.chosen()).length > 0) return;
    for (const one of this.texts.values()) one.value = "";
    this.show(found.reading);
    this.guessed = this.filled();
  }

  private filled(): string {
    return JSON.stringify([...this.texts, ...this.choices, ["code", this.code] as const].map(([, one]) => one.value));
  }

  private text(name: string): HTMLInputElement {
    const one = h("input", {
      class: "input mono",
      id: `reading-${name.replaceAll(" ", "-")}`,
      list: "connector-columns",
      autocomplete: "off",
    });
    this.texts.set(name, one);
    return one;
  }

  private choose(name: string, options: Choices, value: string): HTMLSelectElement {
    const one = choice(`reading-${name}`, options, value);
    this.choices.set(name, one);
    return one;
  }

  private show(reading: Record<string, unknown>): void {
    const code = /^EPSG:(\d+)$/.exec(words(reading["crs"]));
    const crs = code !== null && !CRS.some(([value]) => value === code[0]) ? OTHER : reading["crs"];
    if (crs === OTHER) this.code.value = code![1]!;
    for (const [name, value] of Object.entries({ ...reading, ...(crs === undefined ? {} : { crs }) })) {
      const text = words(value);
      const typed = this.texts.get(name);
      if (typed !== undefined) typed.value = text;
      const chosen = this.choices.get(name);
      if (chosen !== undefined) chooseIn(chosen, text);
    }
    const attributes = Array.isArray(reading["attributes"]) ? (reading["attributes"] as { source: string; name: string }[]) : [];
    for (const { source, name } of attributes) {
      const typed = this.texts.get(`attribute ${name}`);
      if (typed !== undefined) typed.value = source;
    }
    this.showApplying();
  }

  private showApplying(): void {
    this.codeField.hidden = this.choices.get("crs")!.value !== OTHER;
    this.yField.hidden = isInOne(this.choices.get("place_format")!.value);
    const format = this.choices.get("time_format")!.value;
    this.zoneField.hidden = format === "ticks" || format.startsWith("epoch");
  }
}

function words(value: unknown): string {
  return Array.isArray(value) ? value.join(", ") : typeof value === "string" ? value : "";
}

/** Selects a value; if it is not in the list, as a guess may be, it is added. */
function chooseIn(list: HTMLSelectElement, value: string): void {
  if (value === "") return;
  if (![...list.options].some((one) => one.value === value)) list.append(h("option", { value }, value));
  list.value = value;
}
