/**
 * The parsers read what the server's OpenAPI document describes: no field that it does not have,
 * and each form that it allows.
 */

import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { FRAMES, type Frame } from "../src/live/frames";
import { page } from "../src/lib/api";
import * as answers from "../src/lib/answers";
import * as shapes from "../src/lib/shapes";
import { anything, type Parser } from "../src/lib/parse";
import { answerCounts } from "../src/data/answer_counts";
import { entry } from "../src/data/audit_data";
import { bulkAnswer } from "../src/data/bulk_data";
import { sandboxAnswer } from "../src/data/calculus_sandbox_data";
import { templateList } from "../src/data/calculus_template_data";
import { delivery } from "../src/data/channel_data";
import { patternAnswer } from "../src/data/composite_data";
import { connector, connectorKind, trial } from "../src/data/connector_data";
import { closureAnswer } from "../src/data/constraint_graph";
import { density } from "../src/data/density_data";
import { activity, note, profile, watch } from "../src/data/entity_page_data";
import { histogram } from "../src/data/histogram_data";
import { progressAnswer } from "../src/data/motion_progress";
import { countedAnswer } from "../src/data/occupancy_data";
import { overlay } from "../src/data/overlay_data";
import { quotas } from "../src/data/quota_data";
import { dryRun, rule } from "../src/data/rule_data";
import { attributeValues } from "../src/data/styling";
import { member, person, team } from "../src/data/team_data";
import { madeToken } from "../src/data/token_data";
import { inspection, samples, upload } from "../src/data/upload_data";

interface Schema {
  $ref?: string;
  type?: "object" | "array" | "string" | "integer" | "number" | "boolean";
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  items?: Schema;
  enum?: unknown[];
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  nullable?: boolean;
  writeOnly?: boolean;
  format?: string;
  minItems?: number;
}

interface Operation {
  responses: Record<string, { content?: Record<string, { schema?: Schema }> }>;
}

const {
  components: { schemas },
  paths,
} = JSON.parse(readFileSync(new URL("../openapi.json", import.meta.url), "utf-8")) as {
  components: { schemas: Record<string, Schema> };
  paths: Record<string, Record<string, Operation>>;
};

/**
 * `full`: with all optional fields; otherwise with null, or without the field, wherever the
 * document allows it.
 */
function example(schema: Schema, full: boolean): unknown {
  if (schema.$ref !== undefined) return example(schemas[schema.$ref.split("/").at(-1)!]!, full);
  if (schema.nullable === true && !full) return null;
  const choices = schema.allOf ?? schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return example(full ? choices[0]! : choices.at(-1)!, full);
  if (schema.enum !== undefined) return full ? schema.enum[0] : schema.enum.at(-1);
  switch (schema.type) {
    case "object":
      return schema.properties === undefined ? dictionaryOf(schema, full) : objectOf(schema, full);
    case "array":
      return listOf(schema, full);
    case "string":
      return schema.format === "date-time" ? "2026-11-01T12:00:00Z" : full ? "text" : "";
    case "boolean":
      return full;
    case "integer":
    case "number":
      return 1;
    default:
      return full ? { any: 1 } : {};
  }
}

function objectOf(schema: Schema, full: boolean): unknown {
  const required = new Set(schema.required ?? []);
  const entries = Object.entries(schema.properties!).filter(([name, one]) => one.writeOnly !== true && (full || required.has(name)));
  return Object.fromEntries(entries.map(([name, one]) => [name, example(one, full)]));
}

/**
 * Of a list with a number of items, the first has the first of their
 * forms: ids come before numbers.
 */
function listOf({ items = {}, minItems }: Schema, full: boolean): unknown[] {
  if (minItems === undefined) return full ? [example(items, full)] : [];
  return Array.from({ length: minItems }, (_, at) => example(items.anyOf === undefined ? items : items.anyOf.at(at === 0 ? 0 : -1)!, full));
}

function dictionaryOf(schema: Schema, full: boolean): unknown {
  const inner = typeof schema.additionalProperties === "object" ? schema.additionalProperties : {};
  return full ? { some: example(inner, full) } : {};
}

/** `value`, and the paths of fields that are read from it though it does not have them. */
function watched(value: unknown, unknown: string[], path = ""): unknown {
  if (typeof value !== "object" || value === null) return value;
  return new Proxy(value, {
    get(target, key): unknown {
      if (typeof key === "string" && !(key in target)) unknown.push(`${path}/${key}`);
      return watched(Reflect.get(target, key) as unknown, unknown, typeof key === "string" ? `${path}/${key}` : path);
    },
  });
}

const frame: Parser<unknown> = (value) => FRAMES[(value as Frame).type](value);
const PARSERS: [string, Parser<unknown>][] = [
  ["Alert", shapes.alert],
  ["AlertCount", answers.alertCount],
  ["AlertDetail", shapes.alertDetail],
  ["AlertGroup", shapes.alertGroup],
  ["AlertNumbers", shapes.alertNumbers],
  ["AlertRow", shapes.alert],
  ["AnswerCounts", answerCounts],
  ["AnswersBehind", answers.answersBehind],
  ["AttributeValues", attributeValues],
  ["BulkAnswer", bulkAnswer],
  ["ChangedAlerts", answers.changedAlerts],
  ["Channel", shapes.channel],
  ["CheckAnswer", answers.checked],
  ["Closure", closureAnswer],
  ["Connector", connector],
  ["DeadLetter", shapes.deadLetter],
  ["DeadLetterPage", page(shapes.deadLetter)],
  ["Delivery", delivery],
  ["Density", density],
  ["DetectionDetail", shapes.detectionDetail],
  ["DetectionRow", shapes.detection],
  ["DryRun", dryRun],
  ["Reachability", answers.reachability],
  ["Entry", entry],
  ["EvidenceItem", shapes.evidenceItem],
  ["Feed", shapes.feedStatus],
  ["FeedCounters", shapes.counters],
  ["FeedEvent", shapes.happened],
  ["FeedHeadRow", shapes.feedHead],
  ["Feedback", anything],
  ["Filled", answers.filledTemplate],
  ["Gallery", templateList],
  ["Groups", answers.alertGroups],
  ["FeedContents", answers.holdings],
  ["ImportedRegions", answers.importedShapes],
  ["ImportedRegions", answers.importedRegions],
  ["Inspection", inspection],
  ["Job", shapes.job],
  ["KindRow", connectorKind],
  ["Me", shapes.me],
  ["Measures", shapes.feedMeasures],
  ["Member", member],
  ["Mute", shapes.muteRow],
  ["NewChannel", answers.newChannel],
  ["NewChannel", answers.newSecret],
  ["NewInvitation", answers.newInvitation],
  ["NewShare", answers.newShare],
  ["NewToken", madeToken],
  ["Note", note],
  ["NumberHistogram", histogram],
  ["OccupancyCourse", countedAnswer],
  ["Overlay", overlay],
  ["PatternAnswer", patternAnswer],
  ["Person", person],
  ["Preview", answers.preview],
  ["Profile", profile],
  ["ProgressAnswer", progressAnswer],
  ["PushKey", answers.pushKey],
  ["Query", shapes.queryRow],
  ["Quota", (value) => quotas([value])],
  ["Records", answers.registered],
  ["Region", shapes.region],
  ["Region", shapes.regionUse],
  ["RegionActivity", activity],
  ["RemovedAnswer", answers.removedHere],
  ["RemovedQueries", shapes.removedQueries],
  ["RoutingRule", rule],
  ["Samples", samples],
  ["Sandbox", sandboxAnswer],
  ["SavedView", answers.savedView],
  ["Scores", answers.scores],
  ["Share", answers.share],
  ["Shift", answers.shift],
  ["Turn", answers.turn],
  ["Step", shapes.alertStep],
  ["Team", team],
  ["TestAnswer", answers.tested],
  ["Token", shapes.token],
  ["Track", shapes.track],
  ["Tracks", shapes.tracks],
  ["Transferred", answers.transferred],
  ["Trial", trial],
  ["Upload", upload],
  ["VersionDetail", shapes.queryVersion],
  ["VersionRow", answers.versionRow],
  ["Watch", watch],
  ["SnapshotFrame", frame],
  ["ChangesFrame", frame],
  ["PositionsFrame", frame],
  ["StatusFrame", frame],
  ["ResyncFrame", frame],
  ["ErrorFrame", frame],
];

/** Fields of an alert that frames leave out: the common parser has defaults for them. */
const LISTED_ONLY = ["feed", "acknowledged_at", "resolved_by", "resolved_at", "comments", "editable"];

describe("a parser and the document", () => {
  it.each(PARSERS)("%s: reads no field that the document does not have", (name, parser) => {
    const unknown: string[] = [];
    parser(watched(example({ $ref: `#/components/schemas/${name}` }, true), unknown));
    const isOfFrame = name === "AlertRow" || name.endsWith("Frame");
    expect(unknown.filter((path) => !isOfFrame || !LISTED_ONLY.includes(path.split("/").at(-1)!))).toEqual([]);
  });

  it.each(PARSERS)("%s: takes the least that the document allows", (name, parser) => {
    expect(() => parser(example({ $ref: `#/components/schemas/${name}` }, false))).not.toThrow();
  });
});

/**
 * The components that an answer is made of: of a page or a list the one of its
 * rows, of alternatives all.
 */
function componentsIn({ $ref, type, items, anyOf, oneOf, allOf }: Schema): string[] {
  const name = $ref?.split("/").at(-1);
  if (name !== undefined) {
    const rows = schemas[name]!.properties?.["results"]?.items;
    const isPage = rows !== undefined && "next" in schemas[name]!.properties!;
    const inner = isPage ? rows : schemas[name]!;
    return isPage || inner.properties === undefined ? componentsIn(inner) : [name];
  }
  return (type === "array" ? [items!] : (anyOf ?? oneOf ?? allOf ?? [])).flatMap(componentsIn);
}

/** What `method` answers at addresses like `called`, whose variable parts are "*". */
function answered(method: string, called: string): string[] {
  const isCalled = (path: string): boolean => {
    const [known, asked] = [path.split("/"), called.split("/")];
    return known.length === asked.length && known.every((one, at) => one === asked[at] || asked[at] === "*" || /^\{.*\}$/.test(one));
  };
  const alike = Object.keys(paths)
    .map((path) => path.replace(/^\/api\/v1\//, ""))
    .filter(isCalled);
  const found = alike.includes(called) ? [called] : alike;
  return found
    .flatMap((path) => Object.entries(paths[`/api/v1/${path}`]![method]?.responses ?? {}))
    .filter(([status]) => status.startsWith("2"))
    .flatMap(([, { content }]) => componentsIn(content?.["application/json"]?.schema ?? {}));
}

/**
 * The requests of pages, by the addresses in the source: each as the answer of GET, and after
 * `post(` of POST.
 */
function readByPages(): Map<string, string> {
  const source = new URL("../src/", import.meta.url);
  const found = new Map<string, string>();
  for (const file of readdirSync(source, { recursive: true, encoding: "utf-8" }).filter((name) => name.endsWith(".ts"))) {
    for (const [, before, , path] of readFileSync(new URL(file, source), "utf-8").matchAll(/(\bpost\(\s*)?(["`])([a-z](?:(?!\2).)*)\2/g)) {
      const called = path!.replaceAll(/\$\{[^}]*\}/g, "*").split("?")[0]!;
      for (const name of answered(before === undefined ? "get" : "post", called)) found.set(name, `${file}: ${path!}`);
    }
  }
  return found;
}

/** Components without a parser above, and why. */
const UNTESTED: Record<string, string> = {
  Changes: "the pages ask for no changes after a number: frames bring them",
  Entities: "an address of the entity's page with a variable part fits it; no page asks for it",
  ValueHistogram: "the pages ask for numbers only",
  // The document is less specific than the parser.
  Corrected: "problems are any objects in it",
  Derivation: "the ends of an answer are any text in it",
  LastRows: "rows are any objects in it",
  Positions: "positions are lists of anything in it",
};

it("tests a parser for each component that a page reads", () => {
  const read = readByPages();
  expect(read.size).toBeGreaterThan(50);
  const known = new Set([...PARSERS.map(([name]) => name), ...Object.keys(UNTESTED)]);
  expect([...read].filter(([name]) => !known.has(name))).toEqual([]);
  expect(Object.keys(UNTESTED).filter((name) => !read.has(name))).toEqual([]);
});
