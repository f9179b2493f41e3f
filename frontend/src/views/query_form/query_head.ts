/** The page's head with the actions for a stored query, and notices below it. */

import { call, query as address } from "../../lib/api";
import { button, h, icon, linkButton } from "../../lib/dom";
import type { QueryRow } from "../../lib/shapes";
import { t } from "../../lib/texts";
import { familyName } from "../../lib/words";
import { unlessOthersStop } from "../dependents";
import { confirmDanger } from "../dialog_view";
import { fail } from "../shell_view";
import type { Earlier } from "./earlier_version";
import { showVersions } from "./versions_dialog";

/**
 * `stored`: null for a new query; `earlier`: the version shown instead of the newest; `save`: the
 * button that stores it; `onRemoved` is called before the page is left.
 */
interface Shown {
  stored: QueryRow | null;
  earlier: Earlier | null;
  isBulk: boolean;
  save: HTMLButtonElement;
  onRemoved: () => void;
}

export function queryHead({ stored, earlier, isBulk, save, onRemoved }: Shown): HTMLElement {
  const title = stored !== null ? stored.name : isBulk ? t("Queries from a file") : t("New query");
  const actions: HTMLElement[] = [];
  if (stored !== null) {
    actions.push(linkButton(t("Duplicate"), address("/queries/new", { copy: stored.id }), "copy", "button-quiet"));
    actions.push(button(t("Versions"), { icon: "history", kind: "button-quiet", onClick: () => showVersions(stored) }));
    if (stored.editable)
      actions.push(button(t("Remove"), { icon: "trash-2", kind: "button-quiet button-danger", onClick: () => remove(stored, onRemoved) }));
  }
  // A version that explains an answer is read-only: saved by mistake, it would become the newest.
  if (stored?.editable !== false && earlier?.isRestored !== false) actions.push(save);
  const badges =
    stored === null
      ? []
      : [
          h("span", { class: "badge" }, familyName(stored.family)),
          h("span", { class: "badge" }, t("version {version}", { version: (earlier ?? stored).version })),
        ];
  return h(
    "header",
    { class: "bar" },
    h("a", { class: "breadcrumb", href: "/queries/" }, icon("arrow-left"), t("Queries")),
    h("h1", { class: "truncate" }, title),
    ...badges,
    h("div", { class: "bar-actions" }, ...actions),
  );
}

async function remove(row: QueryRow, onRemoved: () => void): Promise<void> {
  if (
    !(await confirmDanger(
      t("Remove this query?"),
      t("“{name}” stops giving answers. Those it has given are kept.", { name: row.name }),
      t("Remove query"),
    ))
  )
    return;
  try {
    const done = await unlessOthersStop(async (stop) => {
      await call(address(`queries/${row.id}/`, { stop_dependents: stop ? "true" : null }), { method: "DELETE" });
      return true;
    }, t("Remove it and stop them"));
    if (done === null) return;
    onRemoved();
    location.assign("/queries/");
  } catch (error) {
    fail(error);
  }
}

/** Why the job runs without the query, if it does. */
export function stopNotice({ stopped }: QueryRow): HTMLElement | null {
  return stopped === null
    ? null
    : h(
        "p",
        { class: "notice notice-critical stop-notice", role: "status" },
        icon("circle-alert"),
        h(
          "span",
          {},
          t("The job stopped this query: {reason}. Narrow it down, or switch it off and on, to start again.", { reason: stopped.reason }),
        ),
      );
}
