/** The connectors of a feed: how they do, and the form that sets one up, with its test. */

import { ApiError, call, get, getAll, post, query } from "../lib/api";
import { button, h, icon, replace } from "../lib/dom";
import { list } from "../lib/parse";
import { formatAgo } from "../lib/time";
import {
  connector as connectorParser,
  connectorKind,
  counted,
  readingOf,
  settingsOf,
  STATES,
  trial as trialParser,
  type Connector,
  type ConnectorField,
  type ConnectorKind,
  type Trial,
} from "../data/connector_data";
import type { FeedStatus } from "../data/shapes";
import { confirmDanger, openDialog } from "./dialog_view";
import { showFaults } from "./faults_view";
import { fail, toast } from "./shell_view";
import { t } from "../lib/texts";

const EVERY_MS = 2000;
const TIME_FORMATS = [
  ["iso", "2026-01-02T03:04:05Z"],
  ["epoch_ms", t("Milliseconds since 1970")],
  ["epoch_s", t("Seconds since 1970")],
  ["ticks", t("Ticks")],
] as const;

/** The dialog of a feed's connectors; it looks again while it is open. */
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
    // Whoever stands on a button stays there.
    if (rows.contains(document.activeElement) && found.length === rows.children.length) return;
    replace(
      rows,
      ...(found.length === 0
        ? [h("li", { class: "muted small" }, t("None yet."))]
        : found.map((one) => connectorRow(one, kinds, feed, () => void refresh().catch(fail)))),
    );
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
  const change = (method: "PATCH" | "DELETE", body?: unknown): void => {
    call(`connectors/${one.id}/`, { method, ...(body === undefined ? {} : { body }) }).then(done, fail);
  };
  const ago = one.last_message_at === null ? null : formatAgo(one.last_message_at, Date.now());
  const counts = counted(one, kind?.direction ?? "in", ago);
  const left = kind?.direction === "out" ? t("What it sent stays where it is.") : t("The rows that it brought stay.");
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
            void confirmDanger(t("Remove the connector “{name}”?", { name: one.name }), left, t("Remove connector")).then(
              (isSure) => isSure && change("DELETE"),
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

function openForm(feed: FeedStatus, kinds: readonly ConnectorKind[], standing: Connector | null, done: () => void): void {
  const name = h("input", { class: "input", id: "connector-name", maxlength: 100, value: standing?.name ?? "", placeholder: t("Mast 1") });
  const choice = h(
    "select",
    { class: "select", id: "connector-kind", disabled: standing !== null },
    ...kinds.map((one) => h("option", { value: one.name, selected: one.name === standing?.kind }, one.title)),
  );
  const fields = h("div", { class: "stack" });
  const guarantee = h("p", { class: "small muted" });
  const found = h("div", { class: "stack", "aria-live": "polite", "data-trial": "" });
  const reading = new ReadingFields(feed, standing?.reading ?? {});
  const dialog = openDialog(
    standing === null ? t("Add connector") : t("Connector {name}", { name: standing.name }),
    labelled(t("Name"), name, "/name"),
    labelled(t("Protocol"), choice, "/kind"),
    fields,
    reading.element,
    guarantee,
    found,
  );
  dialog.element.classList.add("dialog-wide", "connector-form");
  let controls = new Map<string, HTMLInputElement | HTMLSelectElement>();
  const kind = (): ConnectorKind => kinds.find((one) => one.name === choice.value)!;
  const showKind = (): void => {
    controls = new Map(kind().fields.map((one) => [one.name, control(one, standing)]));
    replace(
      fields,
      ...kind().fields.map((one) => labelled(one.label, controls.get(one.name)!, `/settings/${one.name}`, hintOf(one, standing))),
    );
    guarantee.textContent = kind().guarantee;
    reading.element.hidden = !kind().needs_reading;
  };
  choice.addEventListener("change", showKind);
  showKind();
  const body = (): Record<string, unknown> => ({
    feed: feed.name,
    kind: choice.value,
    settings: settingsOf(
      kind().fields,
      new Map(
        [...controls].map(([key, one]) => [key, one instanceof HTMLInputElement && one.type === "checkbox" ? one.checked : one.value]),
      ),
    ),
    reading: kind().needs_reading ? reading.value() : {},
  });
  const refused = (error: unknown): void => {
    if (!(error instanceof ApiError) || error.status !== 400) {
      fail(error);
      return;
    }
    const rest = showFaults(dialog.body, error.faults);
    replace(
      found,
      ...rest.map((one) => h("p", { class: "notice notice-high", role: "alert" }, icon("triangle-alert"), h("span", {}, one.message))),
    );
  };
  const test = button(t("Test"), {
    icon: "activity",
    onClick: () => {
      test.disabled = true;
      const waits =
        kind().direction === "in" ? t("Connecting, and waiting for the first records (ten seconds at most) ...") : t("Connecting ...");
      replace(found, h("p", { class: "small muted" }, waits));
      post("connectors/trial", { ...body(), connector: standing === null ? null : Number(standing.id) }, trialParser)
        .then((told) => {
          showFaults(
            dialog.body,
            told.faults.map(([pointer = "", message = ""]) => ({ pointer: `/reading${pointer}`, message })),
          );
          reading.offer(told);
          replace(found, ...trialView(told));
        }, refused)
        .finally(() => (test.disabled = false));
    },
  });
  dialog.foot.append(
    button(t("Cancel"), { onClick: dialog.close }),
    test,
    button(t("Save"), {
      kind: "button-primary",
      onClick: () => {
        const { settings, reading: meaning, ...place } = body();
        const given = { name: name.value.trim(), settings, reading: meaning };
        const sent =
          standing === null
            ? call("connectors/", { method: "POST", body: { ...place, ...given } })
            : call(`connectors/${standing.id}/`, { method: "PATCH", body: given });
        sent.then(() => {
          dialog.close();
          toast(t("Saved. It connects now."), "good");
          done();
        }, refused);
      },
    }),
  );
}

function hintOf(one: ConnectorField, standing: Connector | null): string {
  return one.type === "secret" && standing !== null ? t("{hint} Left empty, it stays as it is.", { hint: one.hint }).trim() : one.hint;
}

function control(one: ConnectorField, standing: Connector | null): HTMLInputElement | HTMLSelectElement {
  const id = `connector-${one.name}`;
  const value = standing?.kind !== undefined && one.name in standing.settings ? standing.settings[one.name] : one.default;
  if (one.type === "choice")
    return h(
      "select",
      { class: "select", id },
      ...one.choices.map((option) => h("option", { value: option.value, selected: option.value === value }, option.label)),
    );
  if (one.type === "boolean") return h("input", { type: "checkbox", class: "checkbox", id, checked: value === true });
  const shown = one.type === "integer" && value === 0 && one.required ? "" : plain(value);
  return h("input", {
    class: "input",
    id,
    autocomplete: "off",
    value: shown,
    ...(one.type === "secret" ? { type: "password" } : {}),
    ...(one.type === "integer" ? { inputmode: "numeric" } : {}),
  });
}

function labelled(label: string, what: HTMLElement, pointer: string, hint = ""): HTMLElement {
  return h(
    "div",
    { class: "field", "data-pointer": pointer },
    h("label", { for: what.id }, label),
    what,
    hint === "" ? null : h("span", { class: "hint" }, hint),
  );
}

/** Which columns of the records are what. Empty: they are named as the feed's are. */
class ReadingFields {
  readonly element: HTMLElement;
  private readonly inputs = new Map<string, HTMLInputElement | HTMLSelectElement>();
  private readonly known = h("datalist", { id: "connector-columns" });
  private readonly columns: string[];

  constructor(feed: FeedStatus, standing: Record<string, unknown>) {
    this.columns = Object.entries(feed.columns).map(([name, type]) => `${name}:${type}`);
    const text = (name: string): HTMLInputElement =>
      this.keep(
        name,
        h("input", { class: "input mono", id: `reading-${name.replaceAll(" ", "-")}`, list: "connector-columns", autocomplete: "off" }),
      );
    const format = this.keep(
      "time_format",
      h("select", { class: "select", id: "reading-format" }, ...TIME_FORMATS.map(([value, words]) => h("option", { value }, words))),
    );
    const crs = this.keep("crs", h("input", { class: "input mono", id: "reading-crs", autocomplete: "off" }));
    crs.value = feed.crs === "planar" ? "plane" : "EPSG:4326";
    format.value = feed.time === "ticks" ? "ticks" : "iso";
    this.element = h(
      "fieldset",
      { class: "stack" },
      h("legend", {}, t("What the columns of a record mean")),
      h(
        "p",
        { class: "small muted" },
        t("Leave all empty when records have entity, t, x, y and the feed's own columns. Test fills in a guess."),
      ),
      labelled(t("Entity"), text("entity"), "/reading/entity"),
      labelled(t("Time"), text("time"), "/reading/time", t("received is the time at which a record came.")),
      labelled(t("Times are written as"), format, "/reading/time_format"),
      labelled(t("x or longitude"), text("x"), "/reading/x"),
      labelled(t("y or latitude"), text("y"), "/reading/y"),
      labelled(t("Places are in"), crs, "/reading/crs"),
      labelled(t("Event"), text("event"), "/reading/event"),
      ...Object.keys(feed.columns).map((name) => labelled(t("Column {name}", { name }), text(`attribute ${name}`), "/reading/attributes")),
      this.known,
    );
    this.show(standing);
  }

  value(): Record<string, unknown> {
    return readingOf(Object.fromEntries([...this.inputs].map(([name, one]) => [name, one.value])), this.columns);
  }

  /** What a test found: columns to choose from and, where nothing was chosen, a guess. */
  offer(found: Trial): void {
    replace(this.known, ...found.columns.map((value) => h("option", { value })));
    if (Object.keys(this.value()).length === 0) this.show(found.reading);
  }

  private keep<T extends HTMLInputElement | HTMLSelectElement>(name: string, one: T): T {
    this.inputs.set(name, one);
    return one;
  }

  private show(reading: Record<string, unknown>): void {
    for (const [name, value] of Object.entries(reading)) {
      const one = this.inputs.get(name);
      if (one !== undefined) one.value = Array.isArray(value) ? value.join(", ") : String(value);
    }
    const attributes = Array.isArray(reading["attributes"]) ? (reading["attributes"] as { source: string; name: string }[]) : [];
    for (const { source, name } of attributes) {
      const one = this.inputs.get(`attribute ${name}`);
      if (one !== undefined) one.value = source;
    }
  }
}

function trialView(told: Trial): HTMLElement[] {
  if (told.said !== "") return [h("p", { class: "notice" }, icon("info"), h("span", {}, told.said))];
  if (told.records.length === 0)
    return [h("p", { class: "notice" }, icon("info"), h("span", {}, t("It is connected, and nothing came within ten seconds.")))];
  return [
    h("h3", { class: "section-title" }, t("As it came")),
    table(told.records.slice(0, 5)),
    h("h3", { class: "section-title" }, told.rows.length === 0 ? t("No row could be made of it") : t("Rows of the feed")),
    ...(told.rows.length === 0 ? [] : [table(told.rows.slice(0, 5))]),
    ...told.dead.slice(0, 5).map((one) => h("p", { class: "small muted" }, `${one.reason}: ${one.detail}`)),
  ];
}

function plain(value: unknown): string {
  return typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);
}

function table(rows: readonly Record<string, unknown>[]): HTMLElement {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))].slice(0, 30);
  return h(
    "div",
    { class: "table-wrap", tabindex: 0 },
    h(
      "table",
      { class: "table" },
      h("thead", {}, h("tr", {}, ...columns.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, ...rows.map((row) => h("tr", {}, ...columns.map((name) => h("td", { class: "num" }, plain(row[name])))))),
    ),
  );
}
