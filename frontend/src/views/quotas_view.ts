/** Quotas with how much of them is used; an administrator sets them in the same table. */

import { ApiError, call, get } from "../lib/api";
import { button, h, type Child } from "../lib/dom";
import { changedLimits, fullness, quotas, type Quota } from "../data/quota_data";
import { formatNumber } from "../lib/time";
import { openDialog } from "./dialog_view";
import { showFaults } from "./faults_view";
import { fail, toast } from "./shell_view";
import { t } from "../lib/texts";

/** The table; `limit` renders the cell with the allowed number. */
export function quotaTable(rows: readonly Quota[], limit: (row: Quota) => Child = (row) => formatNumber(row.limit)): HTMLElement {
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, t("What")),
    h("th", { scope: "col", class: "right" }, t("Used")),
    h("th", { scope: "col", class: "right" }, t("Allowed")),
  );
  return h(
    "div",
    { class: "table-wrap" },
    h(
      "table",
      { class: "table table-tight quotas-table" },
      h("thead", {}, head),
      h(
        "tbody",
        {},
        ...rows.map((row) =>
          h(
            "tr",
            { "data-quota": row.name },
            h("td", {}, row.what, meter(row)),
            h("td", { class: "right num" }, row.used === null ? "–" : formatNumber(row.used)),
            h("td", { class: "right num" }, limit(row)),
          ),
        ),
      ),
    ),
  );
}

function meter(row: Quota): HTMLElement | null {
  const full = fullness(row);
  if (full === null) return null;
  const colour = full >= 1 ? "--critical" : full >= 0.8 ? "--high" : "--accent";
  return h(
    "div",
    { class: "progress", "aria-hidden": "true" },
    h("i", { vars: { "--w": `${full * 100}%`, "--bar-colour": `var(${colour})` } }),
  );
}

/** A dialog with the quotas at `path`; with `isSettable` they can be edited. */
export async function openQuotas(title: string, path: string, isSettable: boolean): Promise<void> {
  try {
    const rows = await get(path, quotas);
    const fields = new Map(
      rows.map((row) => [
        row.name,
        h("input", {
          class: "input num",
          inputmode: "numeric",
          value: row.limit === row.default ? "" : String(row.limit),
          placeholder: formatNumber(row.default),
          "aria-label": t("Allowed {what}", { what: row.what }),
        }),
      ]),
    );
    const dialog = openDialog(
      title,
      quotaTable(rows, isSettable ? (row) => h("div", { "data-pointer": `/limits/${row.name}` }, fields.get(row.name)) : undefined),
      isSettable ? h("p", { class: "small muted" }, t("An empty field means the server's default.")) : null,
    );
    dialog.foot.append(button(isSettable ? t("Cancel") : t("Close"), { onClick: dialog.close }));
    if (!isSettable) return;
    dialog.foot.append(
      button(t("Set"), {
        kind: "button-primary",
        onClick: () => {
          const limits = changedLimits(rows, Object.fromEntries([...fields].map(([name, field]) => [name, field.value])));
          return call(path, { method: "PATCH", body: { limits } }).then(
            () => {
              dialog.close();
              toast(t("The quotas are set."), "good");
            },
            (error: unknown) => (error instanceof ApiError && error.status === 400 ? showFaults(dialog.body, error.faults) : fail(error)),
          );
        },
      }),
    );
  } catch (error) {
    fail(error);
  }
}
