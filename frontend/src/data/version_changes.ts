/** What differs between two versions of a query's specification, line by line. Pure. */

import { structuredPatch } from "diff";

/** Unchanged lines that are shown before and after each change. */
const CONTEXT = 3;

export interface ChangedLine {
  kind: "added" | "removed" | "same";
  text: string;
}

/** The lines of each place that differs, in order; none if nothing does. */
export function changesBetween(before: unknown, after: unknown): ChangedLine[][] {
  const { hunks } = structuredPatch("", "", linesOf(before), linesOf(after), "", "", { context: CONTEXT });
  return hunks.map((hunk) => hunk.lines.filter((line) => !line.startsWith("\\")).map(changedLine));
}

function changedLine(line: string): ChangedLine {
  const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same";
  return { kind, text: line.slice(1) };
}

/**
 * A specification as JSON, except that a text of several lines (a rule program) stands below its
 * name with its own lines, so that a change of one line is shown as one.
 */
function linesOf(specification: unknown): string {
  const json = JSON.stringify(specification, null, 2);
  const lines = json.split("\n").flatMap((line) => {
    const found = /^(\s*)(".*": )?("(?:[^"\\]|\\.)*\\n(?:[^"\\]|\\.)*")(,?)$/.exec(line);
    if (found === null) return [line];
    const [, indent = "", name = "", text = '""', comma = ""] = found;
    const own = (JSON.parse(text) as string).split("\n").map((one) => `${indent}  ${one}`);
    return [`${indent}${name}"""`, ...own, `${indent}"""${comma}`];
  });
  return `${lines.join("\n")}\n`;
}
