/** All versions of a query, each with its sentence, its document, and what differs from the one before. */

import { changesBetween } from "../../data/version_changes";

import { get, query as address } from "../../lib/api";
import { versionRow, type VersionRow } from "../../lib/answers";
import { h, linkButton } from "../../lib/dom";
import { list } from "../../lib/parse";
import { type QueryRow } from "../../lib/shapes";
import { t } from "../../lib/texts";
import { formatAgo, formatNumber } from "../../lib/time";
import { openDialog } from "../dialog_view";
import { fail } from "../shell_view";

export async function showVersions(row: QueryRow): Promise<void> {
  try {
    const versions = await get(`queries/${row.id}/versions`, list(versionRow));
    const items = versions.map((one, place) =>
      h(
        "div",
        { class: "version" },
        h(
          "div",
          { class: "row spread" },
          h("strong", {}, t("Version {version}", { version: formatNumber(one.version) })),
          one.current ? h("span", { class: "badge badge-good" }, t("current")) : null,
          one.version !== row.version && row.editable
            ? linkButton(t("Restore…"), address(`/queries/${row.id}`, { restore: one.version }), "history", "button-quiet")
            : null,
        ),
        h("p", { class: "small" }, one.sentence),
        h(
          "p",
          { class: "small faint" },
          `${formatAgo(one.created_at, Date.now())}${one.created_by ? t(" by {createdby}", { createdby: one.created_by }) : ""}`,
        ),
        changesView(versions[place + 1], one, place === 0),
        h(
          "details",
          {},
          h("summary", { class: "small" }, t("Specification")),
          h("pre", { class: "mono document" }, JSON.stringify(one.specification, null, 2)),
        ),
      ),
    );
    openDialog(t("Versions of {name}", { name: row.name }), ...items).foot.remove();
  } catch (error) {
    fail(error);
  }
}

/** Which lines of `after` differ from `before`, compared when they are shown; null for the first version. */
function changesView(before: VersionRow | undefined, after: VersionRow, open: boolean): HTMLElement | null {
  if (before === undefined) return null;
  const summary = h("summary", { class: "small" }, t("Changes since version {version}", { version: formatNumber(before.version) }));
  const view = h("details", { open }, summary);
  view.addEventListener("toggle", () => view.append(...changedLines(before, after)), { once: true });
  return view;
}

function changedLines(before: VersionRow, after: VersionRow): HTMLElement[] {
  const places = changesBetween(before.specification, after.specification);
  if (places.length === 0) return [h("p", { class: "small" }, UNCHANGED)];
  return places.map((place) =>
    h(
      "pre",
      { class: "mono document changes" },
      ...place.map(({ kind, text }) => h(TAGS[kind], { class: `change-${kind}` }, `${SIGNS[kind]} ${text}`)),
    ),
  );
}

const UNCHANGED = t("The specification is the same: a region, or a query that this one uses, has changed.");
const SIGNS = { added: "+", removed: "\u2212", same: " " } as const;
/** What screen readers announce as an insertion or a deletion. */
const TAGS = { added: "ins", removed: "del", same: "span" } as const;
