/**
 * The earlier version of a query that its page shows: to explain an answer of that
 * time, or to save it again.
 */

import { trialRequestOf } from "../../data/period";
import { get } from "../../lib/api";
import { versionRow } from "../../lib/answers";
import { h, icon } from "../../lib/dom";
import { list } from "../../lib/parse";
import { queryVersion, type QueryRow } from "../../lib/shapes";
import { t } from "../../lib/texts";
import { formatNumber } from "../../lib/time";

/**
 * `isRestored`: the document as it was written, to be saved again; else with its regions at that
 * time, read-only.
 */
export interface Earlier {
  version: number;
  specification: Record<string, unknown>;
  isRestored: boolean;
}

/** The version that the address names, if the newest differs from it. */
export async function askedVersion(stored: QueryRow | null): Promise<Earlier | null> {
  if (stored === null) return null;
  const restored = new URLSearchParams(location.search).get("restore");
  if (restored !== null) {
    const found = (await get(`queries/${stored.id}/versions`, list(versionRow))).find((one) => String(one.version) === restored);
    return found === undefined || found.version === stored.version
      ? null
      : { version: found.version, specification: found.specification, isRestored: true };
  }
  const version = trialRequestOf(location.search)?.version ?? null;
  if (version === null || version === stored.version) return null;
  const found = await get(`queries/${stored.id}/versions/${version}`, queryVersion);
  return found.unchanged ? null : { version, specification: found.specification, isRestored: false };
}

/** A notice that the page shows an earlier version. */
export function earlierNotice({ id, version }: QueryRow, earlier: Earlier | null): HTMLElement | null {
  if (earlier === null) return null;
  const [shown, newest] = [formatNumber(earlier.version), formatNumber(version)];
  return h(
    "p",
    { class: "notice notice-high earlier" },
    icon("history"),
    h(
      "span",
      { class: "grow" },
      earlier.isRestored
        ? t("The form shows version {shown}. The query is version {newest} until you save.", { shown, newest })
        : t("Version {shown} gave this answer; its rules and areas are shown. The newest is version {newest}.", { shown, newest }),
    ),
    h("a", { href: `/queries/${id}` }, t("See the newest")),
  );
}
