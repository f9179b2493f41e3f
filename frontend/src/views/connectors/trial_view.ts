/** The result of a connector's test. */

import { h, icon } from "../../lib/dom";
import type { Trial } from "../../data/connector_data";
import { t } from "../../lib/texts";
import { reasonName } from "../../lib/words";

export function trialView(trial: Trial): HTMLElement[] {
  if (trial.said !== "") return [h("p", { class: "notice" }, icon("info"), h("span", {}, trial.said))];
  if (trial.records.length === 0)
    return [h("p", { class: "notice" }, icon("info"), h("span", {}, t("It is connected, but received nothing within ten seconds.")))];
  return [
    h("h3", { class: "section-title" }, t("As it came")),
    table(trial.records.slice(0, 5)),
    h("h3", { class: "section-title" }, trial.rows.length === 0 ? t("It could not be read as a row") : t("Rows of the feed")),
    ...(trial.rows.length === 0 ? [] : [table(trial.rows.slice(0, 5))]),
    ...trial.dead.slice(0, 5).map((one) => h("p", { class: "small muted" }, `${reasonName(one.reason)}: ${one.detail}`)),
  ];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);
}

function table(rows: readonly Record<string, unknown>[]): HTMLElement {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))].slice(0, 30);
  return h(
    "div",
    { class: "table-wrap", tabindex: 0 },
    h(
      "table",
      { class: "table" },
      h("thead", {}, h("tr", {}, ...columns.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, ...rows.map((row) => h("tr", {}, ...columns.map((name) => h("td", { class: "num" }, text(row[name])))))),
    ),
  );
}
