/** The rows of a feed as a file: all, or those of a period. */

import type { Feed } from "../lib/shapes";
import { query as address } from "../lib/api";
import { button, download, h } from "../lib/dom";
import { t } from "../lib/texts";
import { fromWall, zoneName, type Zone } from "../lib/time";
import { openDialog } from "./dialog_view";
import { field } from "./form_parts";

type FeedOfRows = Pick<Feed, "name" | "time">;

export function rowsFileButton(feed: FeedOfRows, zone: Zone): HTMLButtonElement {
  return button(t("Rows as a file"), { icon: "download", kind: "button-sm", onClick: () => openRowsFile(feed, zone) });
}

function openRowsFile(feed: FeedOfRows, zone: Zone): void {
  const [from, to] = [endOf(feed, "rows-from"), endOf(feed, "rows-to")];
  const save = (ending: string) => (): void => {
    const [first, last] = [instant(from, feed, zone), instant(to, feed, zone, 999)];
    const isWrong = Number.isNaN(first) || Number.isNaN(last) || (first !== null && last !== null && first > last);
    to.setCustomValidity(isWrong ? t("Give from and to, from before to.") : "");
    if (!to.reportValidity()) return;
    download(address(`/api/v1/feeds/${encodeURIComponent(feed.name)}/rows.${ending}`, { from: first, to: last }));
  };
  const dialog = openDialog(
    t("Rows as a file"),
    h(
      "p",
      { class: "small muted" },
      t("The rows that answers are made from, in the order in which they came; late ones are left out. At most a million."),
    ),
    field("from", t("From"), from, t("Empty: from the oldest row on.")),
    field("to", t("To"), to, t("Empty: up to the newest row.")),
    feed.time === "ms" ? h("p", { class: "small faint" }, zoneName(zone)) : null,
    h("p", { class: "small muted" }, t("backtest reads the Parquet file; the CSV file is for spreadsheets.")),
  );
  dialog.foot.append(
    button(t("Close"), { onClick: dialog.close }),
    button("CSV", { icon: "download", onClick: save("csv") }),
    button("Parquet", { icon: "download", kind: "button-primary", onClick: save("parquet") }),
  );
}

function endOf(feed: FeedOfRows, id: string): HTMLInputElement {
  return feed.time === "ms"
    ? h("input", { class: "input num", id, type: "datetime-local", step: 1 })
    : h("input", { class: "input num", id, inputmode: "numeric", autocomplete: "off", placeholder: t("tick") });
}

/** Null: open on this side; NaN: not a time. A whole second ends `rounding` milliseconds later. */
function instant({ value }: HTMLInputElement, feed: FeedOfRows, zone: Zone, rounding = 0): number | null {
  if (value.trim() === "") return null;
  if (feed.time === "ms") return (fromWall(value, zone) ?? NaN) + rounding;
  return /^-?\d+$/.test(value.trim()) ? Number(value) : NaN;
}
