/** The form that corrects one refused row: a field for each of its values. */

import { fieldsOf, isPlain, textOf, withTexts, type PlainRow } from "../data/letter_row";
import { h } from "../lib/dom";
import { isObject } from "../lib/parse";
import type { DeadLetter, Feed } from "../lib/shapes";
import { t } from "../lib/texts";
import { showFaults } from "./faults_view";

export interface LetterForm {
  element: HTMLElement;
  /** The corrected row; null, with the fault shown, where it is none. */
  row: () => Record<string, unknown> | null;
  focus: () => void;
}

/** Rows with values that fit in no field are corrected as JSON. */
export function letterForm(letter: DeadLetter, feed: Feed): LetterForm {
  return isPlain(letter.row) ? fields(letter, letter.row, feed) : document(letter.row);
}

function fields(letter: DeadLetter, row: PlainRow, feed: Feed): LetterForm {
  const inputs = fieldsOf(letter, row, feed).map((name): [string, HTMLInputElement] => [
    name,
    h("input", { class: "input input-sm mono", value: textOf(row[name]), autocomplete: "off", spellcheck: "false" }),
  ]);
  const element = h(
    "div",
    { class: "letter-fields" },
    ...inputs.map(([name, input]) => h("label", { class: "field" }, h("span", { class: "small" }, name), input)),
  );
  return {
    element,
    row: () => withTexts(letter, row, new Map(inputs.map(([name, input]) => [name, input.value])), feed),
    focus: () => inputs[0]?.[1].focus(),
  };
}

function document(row: unknown): LetterForm {
  const field = h("textarea", { class: "textarea mono", rows: 4, "aria-label": t("The row as JSON") }, JSON.stringify(row));
  const element = h("div", {}, h("div", { class: "field", "data-pointer": "/row" }, field));
  const read = (): Record<string, unknown> | null => {
    const changed = parsed(field.value);
    const message = t('Write the row as a JSON object: {"entity": "a", "t": 1000}.');
    showFaults(element, changed !== null ? [] : [{ pointer: "/row", message }]);
    return changed;
  };
  return { element, row: read, focus: () => field.focus() };
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
