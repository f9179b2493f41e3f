/** Templates of the gallery, and their sentences in parts. Pure. */

import { anything, list, nullable, oneOf, otherwise, record, string } from "../lib/parse";
import { isReference } from "../lib/regions";
import type { TimeUnit } from "../lib/time";
import { fromDuration, unitName } from "./query_form_data";

const parameter = record({
  name: string,
  kind: oneOf("duration", "length", "number", "column", "region", "text"),
  label: string,
  unit: otherwise(string, ""),
  value: anything,
  options: otherwise(list(string), []),
});
export type Parameter = ReturnType<typeof parameter>;

const template = record({
  name: string,
  group: string,
  title: string,
  sentence: string,
  events: otherwise(list(string), []),
  parameters: list(parameter),
  unsuited: nullable(string),
});
export type Template = ReturnType<typeof template>;
export const templateList = record({ templates: list(template) });

export type SentencePart = { text: string } | { parameter: Parameter };

/** The sentence split at its parameters; an unknown parameter stays text. */
export function sentenceParts({ sentence, parameters }: Pick<Template, "sentence" | "parameters">): SentencePart[] {
  return sentence.split(/(\{[a-z_]+\})/).flatMap((part): SentencePart[] => {
    const found = parameters.find((one) => part === `{${one.name}}`);
    if (found !== undefined) return [{ parameter: found }];
    return part === "" ? [] : [{ text: part }];
  });
}

/** A parameter's value as a field shows it. */
export function shown(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** The sentence with the values filled in. */
export function filledSentence(
  template: Pick<Template, "sentence" | "parameters">,
  values: Record<string, unknown>,
  time: TimeUnit,
): string {
  const text = ({ name, kind, unit }: Parameter): string => {
    const value = values[name];
    if (isReference(value)) return value.region;
    if (kind !== "duration") return `${shown(value)}${unit === "" ? "" : ` ${unit}`}`;
    const span = fromDuration(value, time);
    return `${span.amount} ${unitName(span.unit, span.amount)}`;
  };
  return sentenceParts(template)
    .map((part) => ("text" in part ? part.text : text(part.parameter)))
    .join("");
}

/** Templates by group, in the server's order. */
export function grouped(templates: readonly Template[]): [string, Template[]][] {
  const groups = new Map<string, Template[]>();
  for (const one of templates) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
  return [...groups];
}
