/** Links to a feed's live view for readers without an account: created, listed, revoked. */

import { t, tn } from "../lib/texts";
import { ApiError, call, get, post } from "../lib/api";
import { newShare, share, type Share } from "../lib/answers";
import { button, h, icon, replace } from "../lib/dom";
import { list } from "../lib/parse";
import { formatMoment, zoneName, type Zone } from "../lib/time";
import { type Feed } from "../lib/shapes";
import { openDialog } from "./dialog_view";
import { showFaults } from "./faults_view";
import { fail } from "./shell_view";
import { copyRow } from "./secret_view";

const HOUR_MS = 3_600_000;
const SPANS = [
  [1, t("In an hour")],
  [24, t("Tomorrow at this time")],
  [7 * 24, t("In a week")],
  [30 * 24 - 1, t("In 30 days")],
] as const;

/**
 * The dialog of a feed's links; `shown`: the queries that a new link shows, null for
 * all that its creator sees; times are in `zone`.
 */
export function openShares(feed: Feed, shown: readonly string[] | null, zone: Zone): void {
  const path = `feeds/${feed.name}/shares/`;
  const rows = h("ul", {});
  const name = h("input", { class: "input", id: "share-name", maxlength: 100, placeholder: t("Open day") });
  const span = h(
    "select",
    { class: "select", id: "share-until" },
    ...SPANS.map(([hours, text]) => h("option", { value: hours, selected: hours === 24 }, text)),
  );
  const dialog = openDialog(
    t("Share this view with a link"),
    h(
      "p",
      { class: "small muted" },
      shown === null
        ? t("Anyone with the link can see the map, the timeline and all queries of {feed} that you see now, without an account.", {
            feed: feed.title === "" ? feed.name : feed.title,
          })
        : tn(
            "Anyone with the link can see the map, the timeline and the one query of {feed} that is on, without an account.",
            "Anyone with the link can see the map, the timeline and the {count} queries of {feed} that are on, without an account.",
            shown.length,
            { feed: feed.title === "" ? feed.name : feed.title },
          ),
    ),
    h("div", { class: "field", "data-pointer": "/name" }, h("label", { for: "share-name" }, t("For whom")), name),
    h("div", { class: "field", "data-pointer": "/expires_at" }, h("label", { for: "share-until" }, t("It ends")), span),
    rows,
  );
  dialog.foot.append(
    button(t("Close"), { onClick: dialog.close }),
    button(t("Make link"), {
      kind: "button-primary",
      onClick: () => {
        const body = {
          name: name.value.trim(),
          expires_at: new Date(Date.now() + Number(span.value) * HOUR_MS).toISOString(),
          queries: shown?.map(Number) ?? null,
        };
        return post(path, body, newShare).then(
          (made) => {
            showLink(dialog.body, made.id, made.link);
            void load();
          },
          (error: unknown) => (error instanceof ApiError && error.status === 400 ? showFaults(dialog.body, error.faults) : fail(error)),
        );
      },
    }),
  );

  function row(one: Share): HTMLElement {
    const revoke = button(t("Revoke"), {
      kind: "button-quiet button-danger button-sm",
      "aria-label": t("Revoke the link {name}", { name: one.name }),
      onClick: () => {
        call(`${path}${one.id}/`, { method: "DELETE" }).then(() => {
          // An invalid link is not offered for copying.
          dialog.body.querySelector(`.made-link[data-share="${one.id}"]`)?.remove();
          void load();
        }, fail);
      },
    });
    return h(
      "li",
      { class: "channel" },
      h(
        "div",
        { class: "grow" },
        h("strong", {}, one.name === "" ? t("Link") : one.name),
        h(
          "div",
          { class: "small muted" },
          t("Made by {name}, until {expires_at}", {
            name: one.maker.name,
            expires_at: `${formatMoment(one.expires_at, "ms", zone)} ${zoneName(zone)}`,
          }),
        ),
      ),
      revoke,
    );
  }

  async function load(): Promise<void> {
    try {
      replace(rows, ...(await get(path, list(share))).map(row));
    } catch (error) {
      fail(error);
    }
  }
  void load();
}

/** The link is shown once: after the dialog only its hash is stored. */
function showLink(place: HTMLElement, id: string, link: string): void {
  place.querySelector(".made-link")?.remove();
  const field = h("input", { class: "input mono", readonly: true, value: link, "aria-label": t("The link") });
  place.append(
    h(
      "div",
      { class: "made-link stack", "data-share": id },
      h("p", { class: "notice notice-high" }, icon("triangle-alert"), h("span", {}, t("Copy the link now: it is shown only once."))),
      copyRow(field),
    ),
  );
  field.select();
}
