/** The progress of a file that is loaded into its feed, and the actions on it. */

import { call, get } from "../../lib/api";
import { button, h, icon, linkButton, replace } from "../../lib/dom";
import { formatNumber } from "../../lib/time";
import { progress, STATE_WORDS, upload as uploadParser, type Upload } from "../../data/upload_data";
import { fail } from "../shell_view";
import { t } from "../../lib/texts";

const EVERY_MS = 700;

/**
 * Follows the upload until it has finished. `again` inspects the file again, after a failure;
 * `ready` is called once, when there is something to see in the feed.
 */
export function loadView(id: string, again: () => void, ready: (feed: string) => void = () => {}): HTMLElement {
  const shown = h("div", { class: "stack-lg" });
  /** Announced: a new state or error. The numbers of rows change too often to be read out. */
  const news = h("p", { class: "visually-hidden", role: "status" });
  const place = h("div", { class: "panel panel-body wizard-load" }, news, shown);
  let announced = "";
  const steer = (action: string) => (): void => {
    call(`uploads/${id}/load`, { method: "PATCH", body: { action } }).then((row) => show(uploadParser(row)), fail);
  };
  const show = (row: Upload): void => {
    place.dataset["state"] = row.state;
    const colour = row.state === "failed" ? "--critical" : row.state === "done" ? "--good" : "--accent";
    const actions: HTMLElement[] = [];
    if (row.state === "reading" || row.state === "sending")
      actions.push(
        button(t("Pause"), { icon: "pause", onClick: steer("pause") }),
        button(t("Cancel"), { kind: "button-danger", onClick: steer("cancel") }),
      );
    if (row.state === "paused")
      actions.push(
        button(t("Continue"), { icon: "play", kind: "button-primary", onClick: steer("resume") }),
        button(t("Cancel"), { kind: "button-danger", onClick: steer("cancel") }),
      );
    if (row.state === "failed")
      actions.push(button(t("Look at the file again"), { icon: "rotate-ccw", kind: "button-primary", onClick: again }));
    if (row.feed !== null && row.position > 0) {
      const feed = encodeURIComponent(row.feed);
      actions.push(
        linkButton(t("Make a query"), `/queries/new?feed=${feed}`, "plus", row.state === "done" ? "button-primary" : ""),
        linkButton(t("Live view"), `/?feed=${feed}`, "map"),
        linkButton(t("Feeds"), "/feeds/", "radio"),
      );
    }
    const state = `${STATE_WORDS[row.state]} ${row.error}`.trim();
    if (state !== announced) news.textContent = announced = state;
    replace(
      shown,
      h(
        "div",
        { class: "row spread" },
        h("h2", {}, row.feed ?? row.name),
        h(
          "span",
          { class: `badge badge-dot ${row.state === "failed" ? "badge-critical" : row.state === "done" ? "badge-good" : "badge-accent"}` },
          STATE_WORDS[row.state],
        ),
      ),
      h(
        "div",
        {
          class: "progress",
          role: "progressbar",
          "aria-label": t("Loading of {name}", { name: row.name }),
          "aria-valuenow": Math.round(progress(row) * 100),
        },
        h("i", { vars: { "--w": `${progress(row) * 100}%`, "--bar-colour": `var(${colour})` } }),
      ),
      h("p", { class: "muted num" }, sentence(row)),
      row.error === "" ? null : h("p", { class: "notice notice-critical" }, icon("circle-alert"), h("span", {}, row.error)),
      h("div", { class: "row row-wrap" }, ...actions),
    );
  };
  const watch = async (): Promise<void> => {
    try {
      const row = await get(`uploads/${id}/`, uploadParser);
      show(row);
      if (row.feed !== null && (row.state === "done" || (row.as_now && row.position > 0))) {
        ready(row.feed);
        ready = () => {};
      }
      if (row.state === "done" || row.state === "cancelled") return;
    } catch (error) {
      fail(error);
    }
    setTimeout(() => void watch(), EVERY_MS);
  };
  void watch();
  return place;
}

function sentence(row: Upload): string {
  const dead = row.dead > 0 ? t(", {dead} dead letters", { dead: formatNumber(row.dead) }) : "";
  const refused = row.late > 0 ? dead + t(", {count} late", { count: formatNumber(row.late) }) : dead;
  if (row.rows === null) return t("{read} rows read{refused}", { read: formatNumber(row.read), refused });
  const isTimed = row.as_now && row.state === "sending";
  const pace = !isTimed ? "" : row.rate === 1 ? t(", in real time") : t(", {rate} times real time", { rate: formatNumber(row.rate) });
  return t("{position} of {rows} rows loaded{pace}{refused}", {
    position: formatNumber(row.position),
    rows: formatNumber(row.rows),
    pace,
    refused,
  });
}
