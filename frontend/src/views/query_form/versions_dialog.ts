/** All versions of a query, each with its sentence and its document. */

import { get, query as address } from "../../lib/api";
import { versionRow } from "../../lib/answers";
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
    const items = versions.map((one) =>
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
