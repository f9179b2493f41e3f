/** Mutes of a query, an entity, a pair or a region, until when and why; and the list of mutes. */

import { t } from "../lib/texts";
import { muteRow, regionUse, type Alert, type Me, type MuteRow } from "../lib/shapes";
import { call, getAll, post } from "../lib/api";
import { boolean, id, otherwise, record, string } from "../lib/parse";
import { button, h, replace } from "../lib/dom";
import { formatMoment, fromWall, zoneId, zoneName, type Zone } from "../lib/time";
import { mayMake } from "../lib/roles";
import { keepEntries, openDialog } from "./dialog_view";
import { showFaults } from "./faults_view";
import { goToFault, refusedIn } from "./form_parts";
import { fail, toast } from "./shell_view";

const HOUR_MS = 3_600_000;
const SPANS: [string, string][] = [
  ["1", t("For an hour")],
  ["8", t("For 8 hours")],
  ["24", t("For a day")],
  ["168", t("For a week")],
  ["until", t("Until…")],
  ["", t("For good")],
];
const RULES: [string, string][] = [
  ["", t("Once")],
  ["FREQ=DAILY", t("Every day")],
  ["FREQ=WEEKLY", t("Every week")],
  ["FREQ=MONTHLY", t("Every month")],
  ["own", t("By an iCalendar rule…")],
];

interface Target {
  text: string;
  what: Record<string, unknown>;
}

/** The targets that can be muted from an alert. */
function targetsOf(alert: Alert): Target[] {
  return [
    { text: t("The query “{query_name}”", { query_name: alert.query_name }), what: { query: Number(alert.query) } },
    ...alert.entities.map((one) => ({ text: t("{one}, in all queries that you may change", { one }), what: { entities: [one] } })),
    ...(alert.entities.length === 2
      ? [{ text: t("{entities} together", { entities: alert.entities.join(t(" and ")) }), what: { entities: alert.entities } }]
      : []),
  ];
}

const ofFeed = record({ id, name: string, feed: string, editable: otherwise(boolean, false) });

/** Creates a mute without an alert: for planned maintenance. */
async function openPlan(me: Me, onDone: () => void): Promise<void> {
  const [queries, regions] = await Promise.all([
    getAll("queries/?page_size=500", ofFeed, 2000),
    getAll("regions/?page_size=500", ofFeed, 2000),
  ]);
  const targets: Target[] = [
    ...regions.map((one) => ({
      text: `${t("All queries of the region “{name}”", { name: one.name })} (${one.feed})`,
      what: { feed: one.feed, region: Number(one.id) },
    })),
    ...queries
      .filter((one) => one.editable)
      .map((one) => ({
        text: `${t("The query “{query_name}”", { query_name: one.name })} (${one.feed})`,
        what: { feed: one.feed, query: Number(one.id) },
      })),
  ];
  openForm(me, targets, "until", onDone);
}

/** Creates a mute from an alert: its target and duration. */
export async function openMute(alert: Alert, me: Me, onDone: () => void): Promise<void> {
  const targets = targetsOf(alert);
  try {
    const regions = await getAll(`regions/?feed=${encodeURIComponent(alert.feed)}&page_size=500`, regionUse, 500);
    for (const one of regions)
      if (one.used_by.some((query) => query.id === alert.query))
        targets.push({ text: t("All queries of the region “{name}”", { name: one.name }), what: { region: Number(one.id) } });
  } catch (error) {
    fail(error);
  }
  openForm(
    me,
    targets.map((one) => ({ ...one, what: { feed: alert.feed, ...one.what } })),
    SPANS[0]![0],
    onDone,
  );
}

function openForm(me: Me, targets: readonly Target[], usual: string, onDone: () => void): void {
  const what = select(
    t("What"),
    targets.map((one, i) => [String(i), one.text]),
  );
  const span = select(t("How long"), SPANS);
  span.value = usual;
  const from = moment(t("From"));
  const until = moment(t("Until"));
  const repeat = select(t("How often"), RULES);
  const rule = h("input", { class: "input", "aria-label": t("Rule"), placeholder: t("FREQ=WEEKLY;BYDAY=SA,SU") });
  const team = select(t("Shown to"), [["", t("Nobody else")], ...me.teams.map((one): [string, string] => [one.id, one.name])]);
  const reason = h("input", { class: "input", "aria-label": t("Reason"), maxlength: 500 });
  const zoned = h("p", { class: "hint" }, t("In {zone}.", { zone: zoneName(me.time_zone) }));
  const window = h(
    "div",
    { class: "stack" },
    pointed("starts_at", field(t("From"), from)),
    pointed("until", field(t("Until"), until)),
    zoned,
    field(t("How often"), repeat),
    pointed("rule", rule),
  );
  const show = (): void => {
    window.hidden = span.value !== "until";
    rule.hidden = repeat.value !== "own";
  };
  for (const one of [span, repeat]) one.addEventListener("change", show);
  show();
  const dialog = openDialog(
    t("Mute"),
    field(t("What"), what),
    field(t("How long"), span),
    window,
    pointed("reason", field(t("Reason"), reason)),
    field(t("Shown to"), team),
    h(
      "p",
      { class: "small muted" },
      t("Muted alerts are stored and can be viewed, but send no notifications. Those still open when the mute ends are shown again."),
    ),
  );
  keepEntries(dialog);
  const save = (): Promise<void> | undefined => {
    const hasWindow = span.value === "until";
    const missing = [
      { pointer: "/until", message: t("Until when? Give a day and an hour."), is: hasWindow && until.value === "" },
      {
        pointer: "/rule",
        message: t("Write the rule, or choose how often."),
        is: hasWindow && repeat.value === "own" && rule.value.trim() === "",
      },
      { pointer: "/reason", message: t("Give a reason: others see it with the alerts."), is: reason.value.trim() === "" },
    ].filter((one) => one.is);
    showFaults(dialog.body, missing);
    goToFault(dialog.body);
    if (missing.length > 0) return undefined;
    const ends =
      span.value === ""
        ? null
        : span.value === "until"
          ? momentOf(until.value, me.time_zone)
          : new Date(Date.now() + Number(span.value) * HOUR_MS).toISOString();
    const repeats = span.value === "until" ? (repeat.value === "own" ? rule.value.trim() : repeat.value) : "";
    const begins = span.value === "until" && from.value !== "" ? { starts_at: momentOf(from.value, me.time_zone) } : {};
    const body = {
      ...targets[Number(what.value)]!.what,
      reason: reason.value.trim(),
      until: ends,
      ...begins,
      rule: repeats,
      zone: zoneId(me.time_zone),
      team: team.value === "" ? null : Number(team.value),
    };
    return post("mutes/", body, muteRow).then(() => {
      dialog.close();
      toast(t("Muted."), "good");
      onDone();
    }, refusedIn(dialog));
  };
  dialog.foot.append(
    button(t("Cancel"), { onClick: dialog.close }),
    button(t("Mute"), { icon: "bell-off", kind: "button-primary", onClick: save }),
  );
}

/** Current, future and past mutes; those that the reader may change can be lifted. */
export async function openMutes(me: Me, onDone: () => void): Promise<void> {
  const zone = me.time_zone;
  const place = h("ul", { class: "stack mutes" });
  const dialog = openDialog(t("Mutes"), place);
  dialog.element.classList.add("dialog-wide");
  const plan = (): Promise<void> => {
    dialog.close();
    return openPlan(me, onDone).catch(fail);
  };
  dialog.foot.append(
    ...(mayMake(me) ? [button(t("New mute"), { icon: "plus", onClick: plan })] : []),
    button(t("Close"), { onClick: dialog.close }),
  );
  const show = async (): Promise<void> => {
    const mutes = await getAll("mutes/?page_size=200", muteRow, 200);
    replace(
      place,
      ...(mutes.length === 0
        ? [
            h(
              "p",
              { class: "muted" },
              mayMake(me)
                ? t("Nothing is muted. Open an alert to mute its query, its region or its entities; plan maintenance with New mute.")
                : t("Nothing is muted. To mute something, you need the role analyst in a team."),
            ),
          ]
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
        h("div", {}, one.reason),
        h(
          "div",
          { class: "small muted" },
          [
            one.owner.name,
            one.feed,
            spanOf(one, zone),
            ruleWords(one.rule),
            one.alerts === 0 ? "" : t("{count} muted", { count: one.alerts }),
          ]
            .filter(Boolean)
            .join(" · "),
        ),
      ),
      one.ended_at === null && one.editable
        ? button(t("Lift"), {
            kind: "button-sm",
            onClick: () =>
              call(`mutes/${one.id}/`, { method: "DELETE" }).then(() => {
                onDone();
                return show();
              }, fail),
          })
        : null,
    );
  await show().catch(fail);
}

/** A recurrence of the form as text, any other unchanged. */
function ruleWords(rule: string): string {
  return rule === "" ? "" : (RULES.find(([one]) => one === rule)?.[1] ?? rule);
}

function spanOf(one: MuteRow, zone: Zone): string {
  const text = (at: number): string => `${formatMoment(at, "ms", zone)} ${zoneName(zone)}`;
  if (one.ended_at !== null) return t("ended {ended_at}", { ended_at: text(one.ended_at) });
  const from = one.window_from > Date.now() ? t("from {window_from} ", { window_from: text(one.window_from) }) : "";
  return `${from}${one.window_until === null ? t("for good") : t("until {window_until}", { window_until: text(one.window_until) })}`;
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

/** Marks the part of the form at which faults of this field are shown. */
function pointed(name: string, part: HTMLElement): HTMLElement {
  return h("div", { class: "field", "data-pointer": `/${name}` }, part);
}

/** A local time of the reader's zone in the form of the API. */
function momentOf(wall: string, zone: Zone): string | null {
  const at = fromWall(wall, zone);
  return at === null ? null : new Date(at).toISOString();
}
