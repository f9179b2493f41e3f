import { describe, expect, test } from "vitest";
import {
  chosenQueries,
  connector,
  connectorKind,
  counted,
  queriesText,
  queriesWords,
  readingOf,
  settingsOf,
  shownFields,
  STATES,
  trial,
  type ConnectorField,
} from "../src/data/connector_data";

const field = (name: string, type: ConnectorField["type"], more: Partial<ConnectorField> = {}): ConnectorField => ({
  name,
  label: name,
  type,
  default: "",
  required: false,
  hint: "",
  choices: [],
  when: null,
  ...more,
});

describe("settings in the form", () => {
  const fields = [
    field("host", "text"),
    field("port", "integer"),
    field("password", "secret"),
    field("tls", "boolean"),
    field("kind", "choice"),
  ];

  test("numbers are converted, texts are trimmed, check boxes stay booleans", () => {
    const typed = new Map<string, string | boolean>([
      ["host", " mast.example.org "],
      ["port", " 10110 "],
      ["tls", true],
      ["kind", "json"],
    ]);
    expect(settingsOf(fields, typed)).toEqual({ host: "mast.example.org", port: 10110, tls: true, kind: "json" });
  });

  test("a secret that was not typed is left out, so that the stored one stays; a typed one is not trimmed", () => {
    expect(settingsOf(fields, new Map([["password", ""]]))).not.toHaveProperty("password");
    expect(settingsOf(fields, new Map([["password", " p "]]))).toHaveProperty("password", " p ");
  });

  test("an invalid number is sent as typed, for the server to refuse", () => {
    for (const text of ["", "ten", "1.5", "1e3"])
      expect(settingsOf([field("port", "integer")], new Map([["port", text]]))).toEqual({ port: text });
    expect(settingsOf([field("port", "integer")], new Map([["port", "-1"]]))).toEqual({ port: -1 });
  });
});

describe("fields that depend on another field", () => {
  const security = field("security", "choice");
  const password = field("password", "secret", { when: { field: "security", values: ["ssl", "sasl"] } });
  const authority = field("ca", "lines", { when: { field: "tls", values: [true] } });

  test("are shown and sent only with that choice", () => {
    const shown = (typed: [string, string | boolean][]): string[] =>
      shownFields([security, password, authority], new Map(typed)).map(({ name }) => name);
    expect(shown([["security", "sasl"]])).toEqual(["security", "password"]);
    expect(
      shown([
        ["security", "plain"],
        ["tls", true],
      ]),
    ).toEqual(["security", "ca"]);
    expect(
      shown([
        ["security", "plain"],
        ["tls", false],
      ]),
    ).toEqual(["security"]);
  });
});

describe("the queries whose answers are sent", () => {
  test("are stored as a sorted list of ids; empty means all", () => {
    expect(chosenQueries(" 12,7 ,")).toEqual(["12", "7"]);
    expect(chosenQueries("")).toEqual([]);
    expect(queriesText(new Set(["12", "7"]))).toBe("7, 12");
  });

  test("their number is shown", () => {
    expect(queriesWords(0)).toMatch(/^No query is chosen/);
    expect(queriesWords(1)).toBe("1 query is chosen.");
    expect(queriesWords(1200)).toBe("1,200 queries are chosen.");
  });
});

describe("how records are read", () => {
  test("without a choice the columns are named like the feed's", () => {
    expect(readingOf({}, ["speed:float"])).toEqual({});
    expect(readingOf({ entity: " ", crs: "EPSG:4326", "attribute speed": "v" }, ["speed:float"])).toEqual({});
  });

  test("columns, and the feed's attributes that a column was chosen for", () => {
    const typed = { entity: "mmsi, name", time: "received", time_format: "epoch_ms", x: " lon ", y: "lat", "attribute speed": "sog" };
    expect(readingOf(typed, ["speed:float", "kind:string"])).toEqual({
      entity: ["mmsi", "name"],
      time: ["received"],
      time_format: "epoch_ms",
      x: "lon",
      y: "lat",
      event: "",
      crs: "EPSG:4326",
      attributes: [{ source: "sog", name: "speed", type: "float" }],
    });
  });
});

describe("data of the API", () => {
  const sent = {
    id: 7,
    name: "mast",
    kind: "ais-tcp",
    settings: {},
    reading: {},
    enabled: true,
    state: "backoff",
    rate: 0.5,
    messages: 3,
    merged: 1,
    rows: 1,
    dead: 1,
    last_error: "away",
    last_error_at: "2026-01-02T03:04:05Z",
    last_message_at: null,
    editable: false,
  };

  test("a connector, and one without a field is refused", () => {
    const read = connector(sent);
    expect([read.id, read.rate, read.last_error_at, read.last_message_at]).toEqual(["7", 0.5, Date.UTC(2026, 0, 2, 3, 4, 5), null]);
    expect(STATES[read.state]?.[0]).toBe("Waits, then tries again");
    expect(() => connector({ ...sent, rows: undefined })).toThrow(/rows/);
  });

  test("incoming and outgoing connectors have different counters", () => {
    const read = connector(sent);
    expect(counted(read, "in", "1 s ago")).toEqual(["0.5 messages/s", "3 messages", "1 merged", "1 row", "1 dead letter", "last 1 s ago"]);
    expect(counted(read, "out", null)).toEqual(["0.5 answers/s", "3 records sent", "nothing sent yet"]);
  });

  test("a kind with a field of a type that no form knows is refused", () => {
    const kind = {
      name: "x",
      title: "X",
      guarantee: "",
      direction: "in",
      needs_reading: true,
      fields: [field("port", "integer", { default: 5 })],
    };
    expect(connectorKind(kind).fields[0]?.default).toBe(5);
    expect(() => connectorKind({ ...kind, fields: [{ ...kind.fields[0], type: "colour" }] })).toThrow(/type/);
  });

  test("a test run with its records, rows and faults", () => {
    const read = trial({
      columns: ["a"],
      reading: {},
      records: [{ a: 1 }],
      rows: [],
      dead: [{ reason: "malformed", detail: "x" }],
      faults: [{ pointer: "/time", message: "y" }],
      said: "",
    });
    expect(read.dead[0]?.reason).toBe("malformed");
  });
});
