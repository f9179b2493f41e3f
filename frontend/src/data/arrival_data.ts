/**
 * Conversion between the entries of the editor and the document of the family `arrival`,
 * in both directions. Pure.
 */

import type { Fault } from "../lib/api";
import { asList, asSpan, faultOfEmpty, othersOf, type Span } from "./document_data";
import type { Feed } from "../lib/shapes";
import { readWatched, writtenWatched, type Watched } from "./watched_data";
import { t } from "../lib/texts";

export interface ArrivalEntries extends Watched {
  /** How far to look ahead. */
  within: Span;
  /** Course and speed are averages over this time before the last report. */
  over: Span;
  /** How long a report is valid. */
  gap: Span;
  where: unknown[];
  others: Record<string, unknown>;
}

const OWN_KEYS = new Set(["family", "version", "region", "ranges", "within", "over", "gap", "where"]);

/** A new query looks ten minutes ahead. */
export function fromDocument(document: Record<string, unknown>, feed: Feed): ArrivalEntries {
  const { within, over, gap, where } = document;
  const isNew = within === undefined && over === undefined && gap === undefined;
  const first = feed.time === "ms" ? ["PT10M", "PT3M", "PT2M"] : [250, 25, 50];
  const [ahead, before, counts] = isNew ? first : [within, over, gap];
  return {
    ...readWatched(document),
    within: asSpan(ahead),
    over: asSpan(before),
    gap: asSpan(counts),
    where: asList(where),
    others: othersOf(document, OWN_KEYS),
  };
}

export function toDocument(entries: ArrivalEntries): Record<string, unknown> {
  const { within, over, gap, where, others } = entries;
  const document: Record<string, unknown> = { ...others, family: "arrival", version: 1, ...writtenWatched(entries) };
  for (const [key, span] of Object.entries({ within, over, gap })) if (span !== null) document[key] = span;
  if (where.length > 0) document["where"] = where;
  return document;
}

const MISSING: Record<string, string> = {
  region: t("No region yet: draw one on the map, choose a stored one or import a file."),
  within: t("No time yet: enter how far ahead to look."),
  over: t("No time yet: enter the time over which course and speed are computed."),
  gap: t("No time yet: enter how long a report counts."),
};

/** Faults for fields that are still empty. */
export function faultInForm(fault: Fault): Fault {
  return faultOfEmpty(fault, MISSING);
}
