/** The control of one setting of a connector. */

import { h } from "../../lib/dom";
import type { ConnectorField } from "../../data/connector_data";
import type { QueryRow } from "../../lib/shapes";
import { field } from "../form_parts";
import { QueriesChoice } from "./queries_choice";
import { t } from "../../lib/texts";

export interface SettingControl {
  /** With its label and hint. */
  element: HTMLElement;
  value: () => string | boolean;
  /** A message if something is missing. */
  fault: () => string;
}

const NONE = (): string => "";

/**
 * `stored`: the connector's current value; undefined for a new one. `queries`: those of the feed.
 */
export function settingControl(one: ConnectorField, stored: unknown, isNew: boolean, queries: Promise<QueryRow[]>): SettingControl {
  const id = `connector-${one.name}`;
  const pointer = `settings/${one.name}`;
  const value = stored ?? one.default;
  if (one.type === "queries") {
    const choice = new QueriesChoice(id, typeof value === "string" ? value : "", queries);
    return {
      element: h("div", { class: "field", "data-pointer": `/${pointer}` }, choice.element),
      value: () => choice.value(),
      fault: () => choice.fault(),
    };
  }
  if (one.type === "boolean") {
    const box = h("input", { type: "checkbox", id, checked: value === true });
    const label = h("label", { class: "check", for: id }, box, one.label);
    const hint = one.hint === "" ? null : h("span", { class: "hint" }, one.hint);
    return { element: h("div", { class: "field", "data-pointer": `/${pointer}` }, label, hint), value: () => box.checked, fault: NONE };
  }
  const typed = textControl(one, id, value);
  const hint = one.type === "secret" && !isNew ? t("{hint} Empty: no change.", { hint: one.hint }).trim() : one.hint;
  return { element: field(pointer, one.label, typed, hint === "" ? null : hint), value: () => typed.value, fault: NONE };
}

function textControl(one: ConnectorField, id: string, value: unknown): HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement {
  if (one.type === "choice")
    return h(
      "select",
      { class: "select", id },
      ...one.choices.map((option) => h("option", { value: option.value, selected: option.value === value }, option.label)),
    );
  const text = one.type === "integer" && value === 0 && one.required ? "" : typeof value === "string" ? value : JSON.stringify(value);
  if (one.type === "lines") return h("textarea", { class: "textarea", id, rows: 3, autocomplete: "off", spellcheck: "false", value: text });
  return h("input", {
    class: "input",
    id,
    autocomplete: one.type === "secret" ? "new-password" : "off",
    value: text,
    ...(one.type === "secret" ? { type: "password" } : {}),
    ...(one.type === "integer" ? { inputmode: "numeric" } : {}),
  });
}
