/**
 * How the file is mapped: every guess as a field that can be changed. A change is sent immediately;
 * the server then inspects again.
 */

import { h, type Child } from "../../lib/dom";
import {
  COLUMN_TYPES,
  CRS_CHOICES,
  isInOne,
  PLACE_FORMATS,
  TIME_FORMATS,
  UTM,
  utmCrs,
  utmOf,
  type Attribute,
  type Chosen,
  type Inspection,
  type Reading,
} from "../../data/upload_data";
import { t } from "../../lib/texts";
import { withoutAccents } from "../../lib/accents";
import { formField } from "../form_field";

const KINDS: readonly (readonly [string, string])[] = [
  ["csv", t("Text with columns (CSV)")],
  ["json", t("JSON or GeoJSON")],
  ["gpx", "GPX"],
  ["kml", "KML"],
  ["nmea", t("AIS receiver's log (NMEA)")],
  ["parquet", "Parquet"],
  ["arrow", "Arrow"],
  ["excel", "Excel"],
];
const DELIMITERS: readonly (readonly [string, string])[] = [
  [",", t("Comma")],
  [";", t("Semicolon")],
  ["\t", t("Tab")],
  ["|", t("Bar")],
  [" ", t("Blank")],
];
const ENCODINGS = [
  "utf-8",
  "utf-8-sig",
  "utf-16",
  "windows-1252",
  "iso-8859-15",
  "windows-1250",
  "windows-1251",
  "windows-1253",
  "shift_jis",
  "gb18030",
];
const NONE = ["", "–"] as const;

/** `ownZone`: the time zone of the reader's account. */
export function readingForm(found: Inspection, ownZone: string, changed: (change: Chosen) => void): HTMLElement {
  const { reading } = found;
  const columns = found.columns.map(({ name, examples }) => [name, examples.length === 0 ? name : `${name}  (${examples[0]})`] as const);
  const pick = (
    label: string,
    pointer: string,
    value: string,
    options: readonly (readonly [string, string])[],
    take: (value: string) => void,
    hint?: string,
  ): HTMLElement => formField(label, pointer, select(pointer, value, options, take), hint);
  const isText = reading.kind === "csv";
  const layout: Child[] = [
    pick(t("The file is"), "/reading/kind", reading.kind, KINDS, (kind) => changed({ kind })),
    ...(isText
      ? [
          pick(
            t("Columns are separated by"),
            "/reading/delimiter",
            reading.delimiter,
            withOwn(DELIMITERS, reading.delimiter),
            (delimiter) => changed({ delimiter }),
          ),
          pick(
            t("Encoding"),
            "/reading/encoding",
            reading.encoding,
            withOwn(
              ENCODINGS.map((one) => [one, one] as const),
              reading.encoding,
            ),
            (encoding) => changed({ encoding }),
          ),
          check(t("The first line names the columns"), reading.header, (header) => changed({ header })),
        ]
      : []),
    isText || reading.kind === "excel"
      ? pick(
          t("Decimal separator"),
          "/reading/decimal",
          reading.decimal,
          [
            [".", t("Point")],
            [",", t("Comma")],
          ],
          (decimal) => changed({ decimal }),
        )
      : null,
    found.sheets.length > 1
      ? pick(
          t("Sheet"),
          "/reading/sheet",
          reading.sheet === "" ? found.sheets[0]! : reading.sheet,
          found.sheets.map((one) => [one, one] as const),
          (sheet) => changed({ sheet }),
        )
      : null,
  ];
  const [who, second] = [reading.entity[0] ?? "", reading.entity[1] ?? ""];
  const entity = (first: string, other: string): void => changed({ entity: [first, other].filter((name) => name !== "") });
  const [when, clock] = [reading.time[0] ?? "", reading.time[1] ?? ""];
  const time = (first: string, other: string): void => changed({ time: [first, other].filter((name) => name !== "") });
  const optional = [NONE, ...columns];
  return h(
    "div",
    { class: "stack-lg" },
    section(t("File"), ...layout),
    section(
      t("Who"),
      pick(
        t("Column that names the thing"),
        "/reading/entity",
        who,
        [["", t("One thing alone: {thing}", { thing: reading.thing })], ...columns],
        (name) => entity(name, second),
      ),
      who === "" ? null : pick(t("Together with"), "/reading/entity2", second, optional, (name) => entity(who, name)),
    ),
    section(
      t("When"),
      pick(t("Column of the time"), "/reading/time", when, optional, (name) => time(name, clock)),
      when === "" ? null : pick(t("Together with"), "/reading/time2", clock, optional, (name) => time(when, name)),
      pick(t("Written as"), "/reading/time_format", reading.time_format, withOwn(TIME_FORMATS, reading.time_format), (time_format) =>
        changed({ time_format }),
      ),
      zoneField(reading, ownZone, changed),
    ),
    section(t("Where"), ...placeFields(reading, optional, pick, changed), ...crsFields(reading.crs, changed)),
    section(
      t("What else"),
      pick(t("Column that names the event"), "/reading/event", reading.event, [["", t("All rows are positions")], ...columns], (event) =>
        changed({ event }),
      ),
      attributesTable(reading.attributes, found, changed),
    ),
  );
}

type Pick = (
  label: string,
  pointer: string,
  value: string,
  options: readonly (readonly [string, string])[],
  take: (value: string) => void,
) => HTMLElement;

function placeFields(
  reading: Reading,
  columns: readonly (readonly [string, string])[],
  pick: Pick,
  changed: (change: Chosen) => void,
): Child[] {
  const { x, y, place_format } = reading;
  const format = pick(t("Places are written as"), "/reading/place_format", place_format, PLACE_FORMATS, (chosen) =>
    changed({ place_format: chosen, x, y: isInOne(chosen) ? "" : y }),
  );
  if (isInOne(place_format))
    return [format, pick(t("Column of the place"), "/reading/x", x, columns, (name) => changed({ x: name, y: "" }))];
  return [
    format,
    pick(t("Column of x (longitude, east)"), "/reading/x", x, columns, (name) => changed({ x: name, y })),
    pick(t("Column of y (latitude, north)"), "/reading/y", y, columns, (name) => changed({ x, y: name, place_format })),
  ];
}

function zoneField({ zone, time_format }: Reading, ownZone: string, changed: (change: Chosen) => void): HTMLElement | null {
  if (time_format === "ticks" || time_format.startsWith("epoch")) return null;
  const zones = ["UTC", ...Intl.supportedValuesOf("timeZone").filter((one) => one !== "UTC")];
  return formField(
    t("Time zone of times that name none"),
    "/reading/zone",
    select(
      "/reading/zone",
      zone,
      withOwn(
        zones.map((one) => [one, one] as const),
        zone,
      ),
      (value) => changed({ zone: value }),
    ),
    zone === "UTC" && ownZone !== "UTC"
      ? t("They are read as UTC. If they are local times, choose their zone; that of your account is {zone}.", { zone: ownZone })
      : undefined,
  );
}

function crsFields(crs: string, changed: (change: Chosen) => void): Child[] {
  const utm = utmOf(crs);
  const known = CRS_CHOICES.some(([value]) => value === crs);
  const chosen = known ? crs : utm !== null || crs === UTM ? "utm" : "other";
  const choose = (value: string): void => changed({ crs: value === "utm" ? UTM : value === "other" ? "EPSG:3035" : value });
  const fields: Child[] = [formField(t("Coordinates are"), "/reading/crs", select("/reading/crs", chosen, CRS_CHOICES, choose))];
  if (chosen === "utm") {
    const zones = Array.from({ length: 60 }, (_, at) => [String(at + 1), t("Zone {at}", { at: at + 1 })] as const);
    const options = utm === null ? [["", t("Choose the zone")] as const, ...zones] : zones;
    const south = utm?.south ?? false;
    fields.push(
      formField(
        t("UTM zone"),
        "/reading/utm",
        select("/reading/utm", utm === null ? "" : String(utm.zone), options, (value) => changed({ crs: utmCrs(Number(value), south) })),
        utm === null ? t("The file does not state the zone of its coordinates, and each zone has the same numbers.") : undefined,
      ),
    );
    if (utm !== null) fields.push(check(t("South of the equator"), south, (is) => changed({ crs: utmCrs(utm.zone, is) })));
  } else if (chosen === "other") {
    const code = h("input", { class: "input num", id: "wizard-epsg", inputmode: "numeric", value: crs.replace("EPSG:", ""), maxlength: 6 });
    code.addEventListener("change", () => changed({ crs: `EPSG:${code.value.trim()}` }));
    fields.push(h("div", { class: "field", "data-pointer": "/reading/crs" }, h("label", { for: "wizard-epsg" }, t("EPSG code")), code));
  }
  return fields;
}

function attributesTable(attributes: readonly Attribute[], found: Inspection, changed: (change: Chosen) => void): HTMLElement | null {
  const { reading } = found;
  const used = new Set([...reading.time, ...reading.entity, reading.x, reading.y, reading.event]);
  const sources = found.columns.map(({ name }) => name).filter((name) => !used.has(name));
  if (sources.length === 0) return null;
  const bySource = new Map(attributes.map((one) => [one.source, one]));
  const odd = new Map(found.columns.map((one) => [one.name, one.odd]));
  const change = (source: string, next: Attribute | null): void => {
    const rest = new Map(bySource);
    if (next === null) rest.delete(source);
    else rest.set(source, next);
    changed({ attributes: sources.flatMap((name) => rest.get(name) ?? []) });
  };
  const rows = sources.map((source, at) => {
    const one = bySource.get(source);
    const keep = h("input", { type: "checkbox", checked: one !== undefined, "aria-label": t("Keep {source}", { source }) });
    keep.addEventListener("change", () => change(source, keep.checked ? { source, name: plainName(source), type: "string" } : null));
    const name = h("input", {
      class: "input",
      id: `wizard-name-${at}`,
      value: one?.name ?? "",
      disabled: one === undefined,
      "aria-label": t("Name of {source}", { source }),
    });
    name.addEventListener("change", () => change(source, { ...one!, name: name.value.trim() }));
    const type = select(
      `wizard-type-${at}`,
      one?.type ?? "string",
      COLUMN_TYPES.map((kind) => [kind, kind] as const),
      (kind) => change(source, { ...one!, type: kind as Attribute["type"] }),
    );
    type.disabled = one === undefined;
    type.setAttribute("aria-label", t("Type of {source}", { source }));
    const notNumber = one?.type === "string" ? (odd.get(source) ?? "") : "";
    const hint = notNumber === "" ? null : h("span", { class: "hint" }, t("“{value}” is no number", { value: notNumber }));
    return h("tr", {}, h("td", {}, keep), h("td", { class: "nowrap" }, source), h("td", {}, name), h("td", {}, type, hint));
  });
  return h(
    "div",
    { class: "table-wrap", "data-pointer": "/reading/attributes" },
    h(
      "table",
      { class: "table wizard-attributes" },
      h("thead", {}, h("tr", {}, h("th", {}, t("Keep")), h("th", {}, t("Column")), h("th", {}, t("As")), h("th", {}, t("Type")))),
      h("tbody", {}, ...rows),
    ),
  );
}

function plainName(source: string): string {
  const plain = withoutAccents(source)
    .replace(/[^a-z0-9_]+/g, "_")
    .replace(/^_+|_+$/g, "");
  return /^[a-z_]/.test(plain) ? plain : `_${plain}`;
}

/** The options, with the value itself added if it is none of them. */
function withOwn(options: readonly (readonly [string, string])[], value: string): readonly (readonly [string, string])[] {
  return options.some(([one]) => one === value) ? options : [...options, [value, value]];
}

function section(title: string, ...content: Child[]): HTMLElement {
  return h("section", { class: "stack" }, h("h2", { class: "section-title" }, title), ...content);
}

function identifier(pointer: string): string {
  return `wizard${pointer.replaceAll("/", "-")}`;
}

function select(
  pointer: string,
  value: string,
  options: readonly (readonly [string, string])[],
  take: (value: string) => void,
): HTMLSelectElement {
  const element = h(
    "select",
    { class: "select", id: identifier(pointer) },
    ...options.map(([one, text]) => h("option", { value: one, selected: one === value }, text)),
  );
  element.addEventListener("change", () => take(element.value));
  return element;
}

function check(label: string, value: boolean, take: (value: boolean) => void): HTMLElement {
  const box = h("input", { type: "checkbox", checked: value });
  box.addEventListener("change", () => take(box.checked));
  return h("label", { class: "check" }, box, label);
}
