/**
 * Before a file of regions is stored: which of them are refused or stored already, and
 * which would get another name.
 */

import type { Fault } from "../lib/api";
import { button, h, icon } from "../lib/dom";
import { formatNumber, t, tn } from "../lib/texts";
import { openDialog } from "./dialog_view";

/**
 * All regions of the file under free names; only those whose shape is not stored yet; or all, where
 * those with the name of a stored region replace it.
 */
export type ImportChoice = "all" | "new" | "replace";
/** The queries on a stored region, by its id. */
export type UsedBy = (id: string) => readonly { id: string; name: string }[];

export interface FoundRegion {
  name: string;
  file_name: string | null;
  same_as: string | null;
  could_replace: Replaceable | null;
}

interface Replaceable {
  id: string;
  changes: readonly ("geometry" | "tags")[];
}

export interface RefusedRegion {
  row: number;
  name: string;
  faults: readonly Fault[];
}

const MOST_LINES = 12;

/** Whether the `others` are imported without those that are refused. */
export function importOthers(refused: readonly RefusedRegion[], others: number): Promise<boolean> {
  return new Promise((resolve) => {
    let isWanted = false;
    const title = tn("1 region of this file is refused", "{count} regions of this file are refused", refused.length);
    const dialog = openDialog(title, ...lines(refused.map(refusal)));
    dialog.foot.append(
      button(t("Cancel"), { onClick: dialog.close }),
      button(tn("Import the other one", "Import the other {count}", others), {
        kind: "button-primary",
        onClick: () => {
          isWanted = true;
          dialog.close();
        },
      }),
    );
    dialog.element.addEventListener("close", () => resolve(isWanted));
  });
}

function refusal({ row, name, faults }: RefusedRegion): string {
  const reason = faults.map(({ message }) => message).join("; ");
  return name === "" ? t("Row {row}: {reason}", { row, reason }) : t("Row {row}, “{name}”: {reason}", { row, name, reason });
}

function lines(texts: readonly string[]): (HTMLElement | null)[] {
  const rest = texts.length - MOST_LINES;
  return [
    h("ul", { class: "stack small" }, ...texts.slice(0, MOST_LINES).map((text) => h("li", {}, text))),
    rest > 0 ? h("p", { class: "small muted" }, t("and {count} more", { count: rest })) : null,
  ];
}

/** Null: the reader imports nothing. */
export function chooseImport(rows: readonly FoundRegion[], usedBy: UsedBy): Promise<ImportChoice | null> {
  const replacing = rows.filter((row) => isReplacing(row));
  const fresh = rows.filter((row) => row.same_as === null).length;
  const isSettled = (row: FoundRegion): boolean => replacing.length > 0 && row.could_replace !== null;
  const listed = rows.filter((row) => !isSettled(row) && (row.same_as !== null || row.file_name !== null));
  const isWorthChoosing = rows.some((row) => row.same_as === null && !isSettled(row));
  return new Promise((resolve) => {
    let chosen: ImportChoice | null = null;
    const dialog = openDialog(
      titleOf(rows, replacing.length),
      ...replacements(replacing, unchangedIn(rows), usedBy),
      ...lines(listed.map(line)),
    );
    const choice = (text: string, what: ImportChoice, kind = ""): HTMLElement =>
      button(text, {
        kind,
        onClick: () => {
          chosen = what;
          dialog.close();
        },
      });
    const isPrimary = fresh === rows.length && replacing.length === 0;
    dialog.foot.append(
      button(t("Cancel"), { onClick: dialog.close }),
      choice(tn("Import it", "Import all {count}", rows.length), "all", isPrimary ? "button-primary" : ""),
    );
    if (isWorthChoosing && fresh < rows.length)
      dialog.foot.append(
        choice(
          tn("Import only the new one", "Import only the {count} new ones", fresh),
          "new",
          replacing.length === 0 ? "button-primary" : "",
        ),
      );
    if (replacing.length > 0) dialog.foot.append(choice(replaceText(rows, replacing.length), "replace", "button-danger"));
    dialog.element.addEventListener("close", () => resolve(chosen));
  });
}

function isReplacing({ could_replace }: FoundRegion): boolean {
  return could_replace !== null && could_replace.changes.length > 0;
}

function unchangedIn(rows: readonly FoundRegion[]): number {
  return rows.filter(({ could_replace }) => could_replace?.changes.length === 0).length;
}

function titleOf(rows: readonly FoundRegion[], replacing: number): string {
  if (replacing > 0)
    return tn("1 region of this file can replace a stored one", "{count} regions of this file can replace stored ones", replacing);
  const stored = rows.filter((row) => row.same_as !== null).length;
  return stored === 0
    ? tn("1 region gets another name", "{count} regions get other names", rows.filter((row) => row.file_name !== null).length)
    : tn("1 region of this file is stored already", "{count} regions of this file are stored already", stored);
}

/** Regions that are stored as they are in the file are neither replaced nor copied. */
function replaceText(rows: readonly FoundRegion[], replaced: number): string {
  const others = rows.filter((row) => row.could_replace === null).length;
  return others === 0
    ? tn("Replace it", "Replace {count}", replaced)
    : t("Replace {replaced}, import {others}", { replaced: formatNumber(replaced), others: formatNumber(others) });
}

/** All of them: the reader decides about each. */
function replacements(rows: readonly FoundRegion[], unchanged: number, usedBy: UsedBy): (HTMLElement | null)[] {
  if (rows.length === 0) return [];
  const queries = new Map(
    rows
      .filter(({ could_replace }) => could_replace?.changes.includes("geometry"))
      .flatMap(({ could_replace }) => usedBy(could_replace?.id ?? "").map((one) => [one.id, one.name])),
  );
  return [
    h("ul", { class: "stack-tight small import-replaced" }, ...rows.map((row) => h("li", {}, replacement(row)))),
    queries.size === 0
      ? null
      : h(
          "p",
          { class: "notice small" },
          icon("info"),
          h("span", {}, t("Replacing gives these queries new versions: {names}.", { names: [...queries.values()].join(", ") })),
        ),
    unchanged === 0
      ? null
      : h(
          "p",
          { class: "small muted" },
          tn(
            "1 other region is stored as it is in the file: replacing leaves it as it is.",
            "{count} other regions are stored as they are in the file: replacing leaves them as they are.",
            unchanged,
          ),
        ),
  ];
}

function replacement({ name, file_name, could_replace }: FoundRegion): string {
  const own = file_name ?? name;
  const changes = could_replace?.changes ?? [];
  if (changes.length > 1) return t("“{own}” has another shape and other tags; a copy would be called “{name}”", { own, name });
  return changes[0] === "tags"
    ? t("“{own}” has other tags; a copy would be called “{name}”", { own, name })
    : t("“{own}” has another shape; a copy would be called “{name}”", { own, name });
}

function line({ name, file_name, same_as }: FoundRegion): string {
  const own = file_name ?? name;
  if (same_as === null) return t("“{own}”: another region has this name; it would be called “{name}”", { own, name });
  return file_name === null
    ? t("“{own}” has the shape of “{same}”", { own, same: same_as })
    : t("“{own}” has the shape of “{same}”; a copy would be called “{name}”", { own, same: same_as, name });
}
