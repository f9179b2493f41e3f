/** The form of a routing rule, new or stored, with a dry run on the last day's alerts. */

import { atOnce } from "../lib/timing";
import { DAYS, dryRun, rule as ruleParser, type DryRun, type Rule } from "../data/rule_data";
import { channel as channelParser, SEVERITIES, type Me } from "../lib/shapes";
import { call, getAll, post } from "../lib/api";
import { awaiting, button, h, replace } from "../lib/dom";
import { boolean, id, otherwise, record, string } from "../lib/parse";
import { teamMates } from "../lib/team_mates";
import { fromSeverity } from "../lib/words";
import { keepEntries, openDialog } from "./dialog_view";
import { outcome } from "./dry_run_view";
import { showFaults } from "./faults_view";
import { changesIn, choice, field, refusedIn } from "./form_parts";
import { TimingFields } from "./timing_fields";
import { toast } from "./shell_view";
import { t } from "../lib/texts";

const named = record({ id, name: string, feed: otherwise(string, ""), editable: otherwise(boolean, false) });
type Named = ReturnType<typeof named>;
type Options = readonly (readonly [string, string])[];

/**
 * An option for a stored choice that the list cannot express, such as several queries set by a
 * program. It is kept unchanged.
 */
const KEPT = "=";

/** A list with an option for the stored value; a placeholder if there are several. */
function stored(elementId: string, options: Options, values: readonly string[]): HTMLSelectElement {
  const value = values.join(",");
  const isOffered = options.some(([one]) => one === value);
  return choice(
    elementId,
    isOffered ? options : [[KEPT, t("The {count} chosen now", { count: values.length })], ...options],
    isOffered ? value : KEPT,
  );
}

/** Targets of rules by kind and id, as in "channels 2". */
async function targets(me: Me): Promise<[string, string][]> {
  const [channels, people, shifts] = await Promise.all([getAll("channels/", channelParser), teamMates(), getAll("shifts/", named)]);
  return [
    ...channels
      .filter((one) => one.editable)
      .map((one): [string, string] => [`channels ${one.id}`, t("The channel “{name}”", { name: one.name })]),
    ...me.teams.map((one): [string, string] => [`teams ${one.id}`, t("All channels of {name}", { name: one.name })]),
    ...shifts.map((one): [string, string] => [`shifts ${one.id}`, t("On call in “{name}”", { name: one.name })]),
    ...people.map((one): [string, string] => [`people ${one.name}`, t("The personal channels of {name}", { name: one.name })]),
  ];
}

const TARGETS = ["channels", "teams", "people", "shifts"] as const;

/** A chosen target in the form of the API: the other kinds are emptied. */
function targetFields(value: string): Record<string, unknown> {
  if (value === KEPT || value === "") return {};
  const [kind = "", ...rest] = value.split(" ");
  const one = rest.join(" ");
  return { ...Object.fromEntries(TARGETS.map((name) => [name, []])), [kind]: [kind === "people" ? one : Number(one)] };
}

/** The ids of a list's choice; empty if the stored ones are kept. */
function ids(name: string, list: HTMLSelectElement): Record<string, number[]> {
  return list.value === KEPT ? {} : { [name]: list.value === "" ? [] : list.value.split(",").map(Number) };
}

export async function openRuleForm(me: Me, feeds: readonly string[], rule: Rule | null, reload: () => Promise<void>): Promise<void> {
  const [queries, regions, to] = await Promise.all([
    getAll("queries/?page_size=500", named, 2000),
    getAll("regions/?page_size=500", named, 2000),
    targets(me),
  ]);
  const name = h("input", { class: "input", id: "rule-name", maxlength: 100, placeholder: t("Night shift"), value: rule?.name ?? "" });
  const severities = SEVERITIES.map((one) => [one, fromSeverity(one)] as const);
  const severity = choice("rule-severity", severities, rule?.min_severity ?? "high");
  const feed = choice("rule-feed", [["", t("Every feed")], ...feeds.map((one): [string, string] => [one, one])], rule?.feed ?? "");
  const of = (one: Named): [string, string] => [one.id, `${one.name} (${one.feed})`];
  const query = stored("rule-query", [["", t("Every query")], ...queries.map(of)], rule?.queries ?? []);
  const region = stored("rule-region", [["", t("Any region, or none")], ...regions.map(of)], rule?.regions ?? []);
  const tags = h("input", { class: "input", id: "rule-tags", placeholder: t("harbour, night"), value: (rule?.tags ?? []).join(", ") });
  const from = h("input", { class: "input", type: "time", id: "rule-from", value: (rule?.from_time ?? "").slice(0, 5) });
  const until = h("input", { class: "input", type: "time", id: "rule-until", value: (rule?.until_time ?? "").slice(0, 5) });
  const dayNames = DAYS.map((day, i): [string, string] => [String(i), day]);
  const everyDay: Options = [["", t("Every day")], ["0,1,2,3,4", t("Monday to Friday")], ["5,6", t("Saturday and Sunday")], ...dayNames];
  const days = stored("rule-day", everyDay, (rule?.days ?? []).map(String));
  const after = h("input", { class: "input", type: "number", id: "rule-after", min: 0, value: rule?.after_minutes ?? 0 });
  const now = TARGETS.flatMap((kind) => (rule?.[kind] ?? []).map((one) => `${kind} ${one}`));
  const target = rule === null ? choice("rule-to", to) : stored("rule-to", to, now);
  const timing = new TimingFields("rule", rule ?? atOnce(me.time_zone));
  const place = h("div", { class: "stack", role: "status" });
  const body = (): Record<string, unknown> => ({
    name: name.value.trim(),
    min_severity: severity.value,
    feed: feed.value === "" ? null : feed.value,
    ...ids("queries", query),
    ...ids("regions", region),
    tags: tags.value
      .split(",")
      .map((tag) => tag.trim())
      .filter((tag) => tag !== ""),
    ...ids("days", days),
    from_time: from.value === "" ? null : from.value,
    until_time: until.value === "" ? null : until.value,
    after_minutes: Number(after.value),
    ...timing.values(),
    ...targetFields(target.value),
  });
  const before = body();
  /** Includes unchanged values: a dry run does not know the stored rule. */
  const whole = (): Record<string, unknown> => {
    const kept =
      rule === null ? {} : Object.fromEntries((["queries", "regions", "days", ...TARGETS] as const).map((key) => [key, rule[key]]));
    return { ...kept, ...body(), name: name.value.trim() || t("New rule") };
  };
  const dialog = openDialog(
    rule === null ? t("New rule") : t("The rule “{name}”", { name: rule.name }),
    field("name", t("Name"), name),
    field("channels", t("Send to"), target),
    field("min_severity", t("Alerts of"), severity),
    field("feed", t("Feed"), feed),
    field("queries", t("Query"), query),
    field("regions", t("Region that the query names"), region),
    field("tags", t("Tags of the query, one of"), tags),
    field("days", t("Days"), days),
    h("div", { class: "row row-fields" }, field("from_time", t("From"), from), field("until_time", t("Until"), until)),
    h(
      "p",
      { class: "hint" },
      t("In {value}; an end before the beginning is on the next day.", { value: (rule?.zone ?? me.time_zone).replaceAll("_", " ") }),
    ),
    field("after_minutes", t("Only if nobody acknowledged within minutes"), after),
    timing.element,
    place,
  );
  keepEntries(dialog);
  const failed = refusedIn(dialog);
  const showOutcome = (found: DryRun): void => {
    showFaults(dialog.body, []);
    replace(place, outcome(found));
    place.scrollIntoView({ block: "nearest" });
  };
  const tryOut = (): void => {
    // An earlier outcome must not look like that of the present form.
    replace(place, awaiting());
    post("routing-rules/dry-run", whole(), dryRun).then(showOutcome, (error: unknown) => {
      replace(place);
      failed(error);
    });
  };
  const save = async (): Promise<void> => {
    if (rule === null) await post("routing-rules/", body(), ruleParser);
    else await call(`routing-rules/${rule.id}/`, { method: "PATCH", body: changesIn(body(), before) });
    dialog.close();
    toast(
      rule === null ? t("“{name}” is on.", { name: name.value.trim() }) : t("“{name}” is changed.", { name: name.value.trim() }),
      "good",
    );
    await reload();
  };
  dialog.foot.append(
    button(t("Cancel"), { onClick: dialog.close }),
    button(t("Try on the last day"), { onClick: tryOut }),
    button(rule === null ? t("Make rule") : t("Save rule"), { kind: "button-primary", onClick: () => save().catch(failed) }),
  );
}
