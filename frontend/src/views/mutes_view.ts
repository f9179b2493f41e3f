/** Muting: of a query, an entity, a pair or a region, until when and why; and the list of what is muted. */

import { muteRow, regionUse, type Alert, type Me, type MuteRow } from "../data/shapes";
import { call, getAll, post } from "../lib/api";
import { button, h, replace } from "../lib/dom";
import { formatMoment, zoneName, type Zone } from "../lib/time";
import { openDialog } from "./dialog_view";
import { fail, toast } from "./shell_view";

const HOUR_MS = 3_600_000;
const SPANS: [string, string][] = [
  ["1", "For an hour"],
  ["8", "For 8 hours"],
  ["24", "For a day"],
  ["168", "For a week"],
  ["until", "Until…"],
  ["", "For good"],
];
const RULES: [string, string][] = [
  ["", "Once"],
  ["FREQ=DAILY", "Every day"],
  ["FREQ=WEEKLY", "Every week"],
  ["FREQ=MONTHLY", "Every month"],
  ["own", "By an iCalendar rule…"],
];

interface Target {
  text: string;
  what: Record<string, unknown>;
}

/** What of an alert can be muted. */
function targetsOf(alert: Alert): Target[] {
  return [
    { text: `The query “${alert.query_name}”`, what: { query: Number(alert.query) } },
    ...alert.entities.map((one) => ({ text: `${one}, in all queries that you may change`, what: { entities: [one] } })),
    ...(alert.entities.length === 2 ? [{ text: `${alert.entities.join(" and ")} together`, what: { entities: alert.entities } }] : []),
  ];
}

/** Asks what of the alert to mute, and how long. */
export async function openMute(alert: Alert, me: Me, onDone: () => void): Promise<void> {
  const targets = targetsOf(alert);
  try {
    const regions = await getAll(`regions/?feed=${encodeURIComponent(alert.feed)}&page_size=500`, regionUse, 500);
    for (const one of regions)
      if (one.used_by.some((query) => query.id === alert.query))
        targets.push({ text: `All queries of the region “${one.name}”`, what: { region: Number(one.id) } });
  } catch (error) {
    fail(error);
  }
  const what = select(
    "What",
    targets.map((one, i) => [String(i), one.text]),
  );
  const span = select("How long", SPANS);
  const from = moment("From");
  const until = moment("Until");
  const repeat = select("How often", RULES);
  const rule = h("input", { class: "input", "aria-label": "Rule", placeholder: "FREQ=WEEKLY;BYDAY=SA,SU" });
  const team = select("Shown to", [["", "Nobody else"], ...me.teams.map((one): [string, string] => [one.id, one.name])]);
  const reason = h("input", { class: "input", "aria-label": "Reason", maxlength: 500 });
  const window = h("div", { class: "stack" }, field("From", from), field("Until", until), field("How often", repeat), rule);
  const show = (): void => {
    window.hidden = span.value !== "until";
    rule.hidden = repeat.value !== "own";
  };
  for (const one of [span, repeat]) one.addEventListener("change", show);
  show();
  const dialog = openDialog(
    "Mute",
    field("What", what),
    field("How long", span),
    window,
    field("Reason", reason),
    field("Shown to", team),
    h(
      "p",
      { class: "small muted" },
      "Alerts that are muted are kept and can be looked at; nobody is called for them. Those that still hold when it ends come back.",
    ),
  );
  const save = (): void => {
    if (reason.value.trim() === "") {
      reason.focus();
      return;
    }
    const ends =
      span.value === ""
        ? null
        : span.value === "until"
          ? iso(until.value)
          : new Date(Date.now() + Number(span.value) * HOUR_MS).toISOString();
    const repeats = span.value === "until" ? (repeat.value === "own" ? rule.value.trim() : repeat.value) : "";
    const begins = span.value === "until" && from.value !== "" ? { starts_at: iso(from.value) } : {};
    const body = {
      feed: alert.feed,
      ...targets[Number(what.value)]!.what,
      reason: reason.value.trim(),
      until: ends,
      ...begins,
      rule: repeats,
      zone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC",
      team: team.value === "" ? null : Number(team.value),
    };
    post("mutes/", body, muteRow).then(() => {
      dialog.close();
      toast("Muted.", "good");
      onDone();
    }, fail);
  };
  dialog.foot.append(
    button("Cancel", { onClick: dialog.close }),
    button("Mute", { icon: "bell-off", kind: "button-primary", onClick: save }),
  );
}

/** What is muted, what comes, and what was; what is the reader's to change can be lifted. */
export async function openMutes(zone: Zone, onDone: () => void): Promise<void> {
  const place = h("ul", { class: "stack mutes" });
  const dialog = openDialog("Mutes", place);
  dialog.element.classList.add("dialog-wide");
  dialog.foot.append(button("Close", { onClick: dialog.close }));
  const show = async (): Promise<void> => {
    const mutes = await getAll("mutes/?page_size=200", muteRow, 200);
    replace(
      place,
      ...(mutes.length === 0
        ? [h("p", { class: "muted" }, "Nothing is muted. Open an alert to mute its query, its region or who is in it.")]
        : mutes.map((one) => item(one))),
    );
  };
  const item = (one: MuteRow): HTMLElement =>
    h(
      "li",
      { class: "setting" },
      h(
        "div",
        {},
        h("div", {}, h("strong", {}, one.of)),
        h(
          "div",
          { class: "small muted" },
          `${one.owner.name} · ${one.feed} · ${spanOf(one, zone)}${one.rule === "" ? "" : ` · ${one.rule}`}${one.alerts === 0 ? "" : ` · ${one.alerts} muted`}`,
        ),
      ),
      one.ended_at === null && one.editable
        ? button("Lift", {
            kind: "button-sm",
            onClick: () =>
              void call(`mutes/${one.id}/`, { method: "DELETE" }).then(() => {
                onDone();
                return show();
              }, fail),
          })
        : null,
    );
  await show().catch(fail);
}

function spanOf(one: MuteRow, zone: Zone): string {
  const text = (at: number): string => `${formatMoment(at, "ms", zone)} ${zoneName(zone)}`;
  if (one.ended_at !== null) return `ended ${text(one.ended_at)}`;
  const from = one.window_from > Date.now() ? `from ${text(one.window_from)} ` : "";
  return `${from}${one.window_until === null ? "for good" : `until ${text(one.window_until)}`}`;
}

function select(name: string, options: readonly (readonly [string, string])[]): HTMLSelectElement {
  return h("select", { class: "select", "aria-label": name }, ...options.map(([value, text]) => h("option", { value }, text)));
}

function moment(name: string): HTMLInputElement {
  return h("input", { class: "input", type: "datetime-local", "aria-label": name });
}

function field(name: string, control: HTMLElement): HTMLElement {
  return h("label", { class: "field" }, h("span", { class: "label" }, name), control);
}

/** As the API takes moments; an empty field is left to the server to refuse. */
function iso(local: string): string | null {
  return local === "" ? null : new Date(local).toISOString();
}
