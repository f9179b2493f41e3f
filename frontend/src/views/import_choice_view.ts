/**
 * Before a file of regions is stored: which of them are refused or stored already, and
 * which would get another name.
 */

import type { Fault } from "../lib/api";
import { button, h } from "../lib/dom";
import { t, tn } from "../lib/texts";
import { openDialog } from "./dialog_view";

/** All regions of the file, or only those whose shape is not stored yet. */
export type ImportChoice = "all" | "new";

export interface FoundRegion {
  name: string;
  file_name: string | null;
  same_as: string | null;
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
export function chooseImport(rows: readonly FoundRegion[]): Promise<ImportChoice | null> {
  const fresh = rows.filter((row) => row.same_as === null).length;
  const listed = rows.filter((row) => row.same_as !== null || row.file_name !== null);
  const title =
    fresh === rows.length
      ? tn("1 region gets another name", "{count} regions get other names", listed.length)
      : tn("1 region of this file is stored already", "{count} regions of this file are stored already", rows.length - fresh);
  return new Promise((resolve) => {
    let chosen: ImportChoice | null = null;
    const dialog = openDialog(title, ...lines(listed.map(line)));
    const choice = (text: string, what: ImportChoice, kind = ""): HTMLElement =>
      button(text, {
        kind,
        onClick: () => {
          chosen = what;
          dialog.close();
        },
      });
    dialog.foot.append(
      button(t("Cancel"), { onClick: dialog.close }),
      choice(tn("Import it", "Import all {count}", rows.length), "all", fresh === rows.length ? "button-primary" : ""),
    );
    if (fresh > 0 && fresh < rows.length)
      dialog.foot.append(choice(tn("Import only the new one", "Import only the {count} new ones", fresh), "new", "button-primary"));
    dialog.element.addEventListener("close", () => resolve(chosen));
  });
}

function line({ name, file_name, same_as }: FoundRegion): string {
  const own = file_name ?? name;
  if (same_as === null) return t("“{own}”: another region has this name; it would be called “{name}”", { own, name });
  return file_name === null
    ? t("“{own}” has the shape of “{same}”", { own, same: same_as })
    : t("“{own}” has the shape of “{same}”; a copy would be called “{name}”", { own, same: same_as, name });
}
