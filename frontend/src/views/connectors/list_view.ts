/** The connectors of a feed, and their states. */

import { call, get, getAll, query } from "../../lib/api";
import { button, h, icon, replace } from "../../lib/dom";
import { list } from "../../lib/parse";
import { formatAgo } from "../../lib/time";
import {
  connector as connectorParser,
  connectorKind,
  counted,
  STATES,
  type Connector,
  type ConnectorKind,
} from "../../data/connector_data";
import type { FeedStatus } from "../../lib/shapes";
import { confirmDanger, openDialog } from "../dialog_view";
import { fail } from "../shell_view";
import { openForm } from "./form_view";
import { t } from "../../lib/texts";

const EVERY_MS = 2000;

/** The dialog of a feed's connectors; it refreshes while it is open. */
export function openConnectors(feed: FeedStatus): void {
  const rows = h("ul", { "aria-label": t("Connectors") });
  const dialog = openDialog(
    t("Connectors of {value}", { value: feed.title === "" ? feed.name : feed.title }),
    h(
      "p",
      { class: "small muted" },
      t("Streams from outside that run into this feed (receivers, brokers, polled addresses), and answers of its queries that go out."),
    ),
    rows,
  );
  dialog.element.classList.add("dialog-wide");
  dialog.foot.append(button(t("Close"), { onClick: dialog.close }));
  let kinds: ConnectorKind[] = [];
  const refresh = async (): Promise<void> => {
    const found = await getAll(query("connectors/", { feed: feed.name }), connectorParser);
    // A button that is being pressed is not replaced; the focus stays on
    // the button of the same name.
    if (rows.querySelector("button:active") !== null) return;
    const focused = rows.contains(document.activeElement) ? document.activeElement?.getAttribute("aria-label") : null;
    replace(
      rows,
      ...(found.length === 0
        ? [h("li", { class: "muted small" }, t("None yet."))]
        : found.map((one) => connectorRow(one, kinds, feed, () => void refresh().catch(fail)))),
    );
    if (focused !== null) [...rows.querySelectorAll("button")].find((one) => one.getAttribute("aria-label") === focused)?.focus();
  };
  void get("connectors/kinds", list(connectorKind)).then((given) => {
    kinds = given;
    if (feed.editable)
      dialog.foot.append(
        button(t("Add connector"), {
          icon: "plus",
          kind: "button-primary",
          onClick: () => openForm(feed, kinds, null, () => void refresh().catch(fail)),
        }),
      );
    return refresh();
  }, fail);
  const timer = setInterval(() => void refresh().catch(() => undefined), EVERY_MS);
  dialog.element.addEventListener("close", () => clearInterval(timer));
}

function connectorRow(one: Connector, kinds: readonly ConnectorKind[], feed: FeedStatus, done: () => void): HTMLElement {
  const kind = kinds.find(({ name }) => name === one.kind);
  const [words, badge] = one.enabled ? (STATES[one.state] ?? [one.state, ""]) : [t("Switched off"), ""];
  const change = (method: "PATCH" | "DELETE", body?: unknown): Promise<void> =>
    call(`connectors/${one.id}/`, { method, ...(body === undefined ? {} : { body }) }).then(done, fail);
  const ago = one.last_message_at === null ? null : formatAgo(one.last_message_at, Date.now());
  const counts = counted(one, kind?.direction ?? "in", ago);
  const left = kind?.direction === "out" ? t("Messages already sent are not affected.") : t("The rows that it stored are kept.");
  const actions = one.editable
    ? [
        button(one.enabled ? t("Switch off") : t("Switch on"), {
          kind: "button-sm",
          "aria-label": `${one.enabled ? t("Switch off") : t("Switch on")} ${one.name}`,
          onClick: () => change("PATCH", { enabled: !one.enabled }),
        }),
        kind === undefined
          ? null
          : button(t("Edit"), {
              icon: "pencil",
              kind: "button-sm",
              "aria-label": t("Edit {name}", { name: one.name }),
              onClick: () => openForm(feed, kinds, one, done),
            }),
        button(t("Remove"), {
          kind: "button-quiet button-danger button-sm",
          "aria-label": t("Remove {name}", { name: one.name }),
          onClick: () =>
            confirmDanger(t("Remove the connector “{name}”?", { name: one.name }), left, t("Remove connector")).then((isSure) =>
              isSure ? change("DELETE") : undefined,
            ),
        }),
      ]
    : [];
  return h(
    "li",
    { class: "channel", "aria-label": one.name },
    h(
      "div",
      { class: "grow" },
      h(
        "div",
        { class: "row" },
        h("strong", {}, one.name),
        h("span", { class: `badge badge-dot ${badge}`, "data-state": one.enabled ? one.state : "off" }, words),
        h("span", { class: "small faint" }, kind?.title ?? one.kind),
      ),
      h("div", { class: "small muted num" }, counts.join(" · ")),
      one.last_error === "" || (one.state === "running" && one.enabled)
        ? null
        : h(
            "p",
            { class: "notice notice-high" },
            icon("triangle-alert"),
            h("span", {}, `${one.last_error}${one.last_error_at === null ? "" : ` (${formatAgo(one.last_error_at, Date.now())})`}`),
          ),
    ),
    ...actions,
  );
}
