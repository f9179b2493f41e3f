/**
 * Conversion between the entries of the rule form and a specification of the family `calculus`,
 * in both directions. Pure.
 */

import type { Fault } from "../lib/api";
import { isObject } from "../lib/parse";
import { t } from "../lib/texts";
import { faultOfEmpty } from "./document_data";
import { namesOf, type Names } from "./calculus_program_data";
import type { Feed } from "../lib/shapes";

export type InputKind = "event" | "points" | "intervals";
export interface InputEntry {
  name: string;
  /** How rows state it: at instants, at single ticks, or over [t, t_end). */
  kind: InputKind;
  /** The column of each argument. */
  columns: string[];
  /** Derived from the program and the feed's columns; false once the reader has changed it. */
  isGuessed: boolean;
}
export interface CalculusEntries {
  program: string;
  /** The chosen names; null: everything that rules define. */
  outputs: string[] | null;
  window: unknown;
  step: unknown;
  inputs: InputEntry[];
  /** Regions by their names in the program. */
  areas: Record<string, unknown>;
  /** Whether the partitions of a job share the work. */
  distributed: boolean;
  /** Keys that the form does not show, unchanged. */
  others: Record<string, unknown>;
  /** The document does not name its outputs, and the reader has not chosen any. */
  leavesOutputs: boolean;
}

/**
 * The inputs that a `synopsis` derives from plain positions, for which the feed needs no columns.
 * The server uses the same names (engine/event_calculus/synopsis.py).
 */
const MADE_BY_SYNOPSIS: readonly string[] = [
  "gap_start",
  "gap_end",
  "stop_start",
  "stop_end",
  "slow_motion_start",
  "slow_motion_end",
  "change_in_speed_start",
  "change_in_speed_end",
  "change_in_heading",
  "entersArea",
  "leavesArea",
  "velocity",
  "coord",
];

const OWN = ["program", "outputs", "window", "step", "inputs", "areas", "distributed"];

export function fromCalculus(document: Record<string, unknown>, feed: Feed): CalculusEntries {
  const isMs = feed.time === "ms";
  const entries: CalculusEntries = {
    program: typeof document["program"] === "string" ? document["program"] : "",
    outputs: Array.isArray(document["outputs"]) ? document["outputs"].map(String) : null,
    window: document["window"] ?? (isMs ? "PT10M" : 15_000),
    // Rows of history are not waited for; with fewer steps more of it can be read.
    step: document["step"] ?? (!isMs ? 250 : feed.wall_clock ? "PT10S" : "PT1M"),
    inputs: isObject(document["inputs"]) ? Object.entries(document["inputs"]).map(inputEntry) : [],
    areas: isObject(document["areas"]) ? { ...document["areas"] } : {},
    distributed: document["distributed"] === true,
    others: Object.fromEntries(Object.entries(document).filter(([key]) => !OWN.includes(key))),
    leavesOutputs: typeof document["program"] === "string" && document["outputs"] === undefined,
  };
  return withInputs(entries, namesOf(entries.program), feed);
}

/** What the form shows in place of the inputs when the rules name no rows. */
export function textWithoutInputs(others: Record<string, unknown>): string {
  return others["synopsis"] === undefined
    ? t("The rules use nothing from the rows yet: an event such as position(V) in a condition is one row of that name.")
    : t("No columns to choose: the synopsis of the specification makes events such as velocity and gap_start of the positions.");
}

function inputEntry([name, value]: [string, unknown]): InputEntry {
  const source = isObject(value) ? value : {};
  const kind = source["fluent"] === "points" || source["fluent"] === "intervals" ? source["fluent"] : "event";
  return { name, kind, columns: Array.isArray(source["args"]) ? source["args"].map(String) : [], isGuessed: false };
}

const MISSING: Record<string, string> = {
  program: t("No rules yet: write some, or begin with a template."),
  window: t("No time yet: enter how long it remembers."),
  step: t("No time yet: enter how often it decides."),
};

const NO_OUTPUT = t("Nothing chosen yet: tick what it answers.");

/** Faults for fields that are still empty. */
export function faultInForm(fault: Fault): Fault {
  return fault.pointer === "/outputs" ? { ...fault, message: NO_OUTPUT } : faultOfEmpty(fault, MISSING);
}

/**
 * The document. Chosen inputs stay in it although the program no longer names them, which
 * may be for a moment only.
 */
export function toCalculus(entries: CalculusEntries): Record<string, unknown> {
  const document: Record<string, unknown> = { ...entries.others };
  // Without rules nothing can be derived: the server reports what is missing.
  if (entries.program.trim() !== "") document["program"] = entries.program;
  const names = namesOf(entries.program);
  const inputs = entries.inputs.filter((entry) => entry.columns.length > 0 || entry.kind === "event");
  if (inputs.length > 0)
    document["inputs"] = Object.fromEntries(
      inputs.map((entry) => [entry.name, { args: columnsRead(entry, names), ...(entry.kind === "event" ? {} : { fluent: entry.kind }) }]),
    );
  if (Object.keys(entries.areas).length > 0) document["areas"] = entries.areas;
  const outputs = outputsOf(entries, names);
  const isLeft = entries.leavesOutputs && entries.outputs === null;
  // Without the key everything would be answered. The server reports that nothing is chosen.
  const isNone = entries.outputs?.length === 0 && names.defined.length > 0;
  if ((outputs.length > 0 && !isLeft) || isNone) document["outputs"] = outputs;
  if (entries.window !== null) document["window"] = entries.window;
  if (entries.step !== null) document["step"] = entries.step;
  if (entries.distributed) document["distributed"] = true;
  return document;
}

/**
 * The chosen names that the program still has. Without a choice: the last fluents that its rules
 * define, or the outputs that a saved program declares.
 */
export function outputsOf({ outputs, leavesOutputs }: CalculusEntries, { defined, inputs, outputs: declared }: Names): string[] {
  const left = outputs?.filter((name) => [...defined, ...inputs].some((one) => one.name === name));
  // If no chosen name is in the text any more, for example after renaming the only one, the choice
  // is ignored.
  if (left !== undefined && (left.length > 0 || outputs?.length === 0)) return left;
  if (declared.length > 0) return [...declared];
  if (leavesOutputs) return defined.map((one) => one.name);
  const last = defined.at(-1);
  return last === undefined ? [] : [last.name];
}

/**
 * The entries with one input for each name that the program takes from rows: existing inputs are
 * kept, missing ones are guessed from the feed's columns.
 */
export function withInputs(entries: CalculusEntries, names: Names, feed: Feed): CalculusEntries {
  const known = new Map(entries.inputs.map((entry) => [entry.name, entry]));
  const made = entries.others["synopsis"] === undefined ? [] : MADE_BY_SYNOPSIS;
  const taken = names.inputs.filter(({ name }) => known.get(name)?.isGuessed === false || !made.includes(name));
  const wanted = taken.map(({ name, kind, args, points }): InputEntry => {
    const entry = known.get(name);
    if (entry !== undefined && (entry.isGuessed ? entry.columns.length === args.length : isEnough(entry, args))) return entry;
    const columns = args.length === 0 ? ["entity"] : args.map((arg, place) => columnFor(arg, place, feed));
    // Arguments that are added to the rules later get a column; those before
    // them keep the chosen ones.
    if (entry?.isGuessed === false) return { ...entry, columns: [...entry.columns, ...columns.slice(entry.columns.length)] };
    return { name, kind: kind === "event" ? "event" : points ? "points" : "intervals", columns, isGuessed: true };
  });
  // A text that is invalid for a moment while typing must not lose the settings.
  const kept = entries.inputs.filter((entry) => !entry.isGuessed && !wanted.some((one) => one.name === entry.name));
  return { ...entries, inputs: [...wanted, ...kept] };
}

/**
 * The text alone does not show how many columns a term with arguments, such as `pow(vote(V, M))`,
 * needs.
 */
function isCountable(args: readonly string[]): boolean {
  return args.length > 0 && !args.some((arg) => arg.includes("("));
}

function isEnough({ columns }: InputEntry, args: readonly string[]): boolean {
  return !isCountable(args) || columns.length >= args.length;
}

/**
 * The columns of the arguments that the rules name. More may have been chosen before an argument
 * was removed from the rules.
 */
export function columnsRead({ name, columns }: InputEntry, names: Names): string[] {
  const args = names.inputs.find((one) => one.name === name)?.args ?? [];
  return isCountable(args) ? columns.slice(0, args.length) : columns;
}

const HINTS: [RegExp, string[]][] = [
  [/speed|velocity|sog/i, ["sog", "speed", "velocity"]],
  [/course|cog/i, ["cog", "course"]],
  [/heading|head/i, ["heading", "true_heading", "cog"]],
  [/^(x|lon|longitude)$/i, ["x"]],
  [/^(y|lat|latitude)$/i, ["y"]],
  [/type|kind|class/i, ["ship_type", "type", "kind"]],
];

/**
 * The column whose name resembles the argument's; the first argument is the entity, the
 * others are other entities.
 */
function columnFor(arg: string, place: number, feed: Feed): string {
  if (place === 0) return "entity";
  const bare = arg.replace(/^_+/, "");
  const columns = ["x", "y", ...Object.keys(feed.columns)];
  const same = columns.find((column) => column.toLowerCase() === bare.toLowerCase());
  const hinted = HINTS.filter(([pattern]) => pattern.test(bare)).flatMap(([, wanted]) =>
    wanted.filter((column) => columns.includes(column)),
  );
  return same ?? hinted[0] ?? `entity${place + 1}`;
}
