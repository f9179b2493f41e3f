import { get, page, query as address } from "../lib/api";
import { actorText, detailText, entry, objectText, outcomeText, OUTCOMES, type Entry } from "../data/audit_data";
import { button, empty, h, linkButton, replace } from "../lib/dom";
import { formatMoment, fromWall } from "../lib/time";
import { fail, openShell, pageFrame } from "../views/shell_view";
import { t } from "../lib/texts";

const shell = openShell();
const download = linkButton(t("Export as JSON lines"), "/api/v1/audit/export", "download");
const body = pageFrame(shell.root, t("Audit log"), [download]);

const actor = h("input", { class: "input", type: "search", placeholder: t("User begins with"), "aria-label": t("User begins with") });
const action = h("input", {
  class: "input",
  type: "search",
  placeholder: t("Action, such as query."),
  "aria-label": t("Action, or how it begins"),
});
const outcome = h(
  "select",
  { class: "select", "aria-label": t("Outcome") },
  h("option", { value: "" }, t("All outcomes")),
  ...Object.entries(OUTCOMES).map(([value, text]) => h("option", { value }, text)),
);
const from = h("input", { class: "input", type: "datetime-local", id: "audit-from" });
const to = h("input", { class: "input", type: "datetime-local", id: "audit-until" });
const panel = h(
  "div",
  { class: "panel table-wrap", role: "region", "aria-label": t("Entries"), tabindex: 0, "aria-busy": "true" },
  h("div", { class: "panel-body stack" }, ...[1, 2, 3, 4].map(() => h("div", { class: "skeleton" }))),
);
body.append(
  h(
    "div",
    { class: "toolbar" },
    ...[actor, action, outcome].map((field) => h("div", { class: "toolbar-select" }, field)),
    moment(t("From"), from),
    moment(t("Until"), to),
  ),
  panel,
);

/** Wide enough for a day and a time in every language, with its label: two empty fields look the
 * same. */
function moment(name: string, field: HTMLInputElement): HTMLElement {
  return h("div", { class: "row toolbar-moment" }, h("label", { for: field.id, class: "small muted" }, name), field);
}

let rows: Entry[] = [];
let next: string | null = null;
let asked = 0;

function instant(field: HTMLInputElement): string | null {
  const t = field.value === "" ? null : fromWall(field.value, shell.me.time_zone);
  return t === null ? null : new Date(t).toISOString();
}

function filters(): Record<string, string | null> {
  return { actor: actor.value.trim(), action: action.value.trim(), outcome: outcome.value, from: instant(from), to: instant(to) };
}

function tableRow(row: Entry): HTMLElement {
  const state = row.outcome === "done" ? "badge" : "badge badge-high";
  return h(
    "tr",
    {},
    h("td", { class: "num nowrap" }, formatMoment(row.at, "ms", shell.me.time_zone)),
    h("td", {}, actorText(row), row.address === null ? null : h("div", { class: "small faint mono" }, row.address)),
    h("td", {}, h("span", { class: "mono" }, row.action), h("div", { class: "small faint" }, row.request)),
    h("td", {}, objectText(row), h("div", { class: "small muted" }, detailText(row))),
    h(
      "td",
      { class: "nowrap" },
      h("span", { class: state }, outcomeText(row)),
      row.status === null ? null : h("span", { class: "small faint num" }, ` ${row.status}`),
    ),
  );
}

function show(): void {
  panel.removeAttribute("aria-busy");
  if (rows.length === 0) {
    replace(panel, empty("history", t("No entries"), t("Nothing in the log matches what you chose.")));
    return;
  }
  const more =
    next === null
      ? null
      : h("div", { class: "panel-body" }, button(t("Show older entries"), { icon: "chevron-down", onClick: () => load(next) }));
  replace(
    panel,
    h(
      "table",
      { class: "table" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...[t("When"), t("User and address"), t("What"), t("To which object"), t("Outcome")].map((text) =>
            h("th", { scope: "col" }, text),
          ),
        ),
      ),
      h("tbody", {}, ...rows.map(tableRow)),
    ),
    more,
  );
}

/**
 * One page of entries: the newest that match the filters, or those after `older`. Responses to
 * earlier requests are dropped.
 */
async function load(older: string | null = null): Promise<void> {
  const mine = ++asked;
  try {
    const link = older === null ? null : new URL(older, location.href);
    const found = await get(link === null ? address("audit/", filters()) : link.pathname + link.search, page(entry));
    if (mine !== asked) return;
    rows = older === null ? found.results : [...rows, ...found.results];
    next = found.next;
    show();
  } catch (error) {
    fail(error);
  }
}

function choose(): void {
  download.href = address("/api/v1/audit/export", filters());
  void load();
}

for (const field of [actor, action, outcome, from, to]) field.addEventListener("change", choose);
void load();
