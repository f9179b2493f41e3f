/** Routing rules: which alerts go to which channels; what they would have done with the alerts of the last day. */

import { channel as channelParser, SEVERITIES, type Channel, type Me } from "../data/shapes";
import { conditionWords, DAYS, dryRun, rule as ruleParser, targetWords, type DryRun, type Rule } from "../data/rule_data";
import { ApiError, call, get, getAll, post } from "../lib/api";
import { button, empty, h, replace } from "../lib/dom";
import { boolean, id, list, otherwise, record, string } from "../lib/parse";
import { SEVERITY_NAMES } from "../lib/words";
import { confirmDanger, openDialog } from "./dialog_view";
import { showFaults } from "./faults_view";
import { fail, toast } from "./shell_view";

const named = record({ id, name: string, feed: otherwise(string, ""), editable: otherwise(boolean, false) });
type Named = ReturnType<typeof named>;

export class RulesView {
  readonly element = h("div", { class: "stack" });
  private channels: Channel[] = [];

  constructor(
    private readonly me: Me,
    private readonly feeds: readonly string[],
  ) {}

  async load(): Promise<void> {
    const [rules, channels] = await Promise.all([getAll("routing-rules/", ruleParser), getAll("channels/", channelParser)]);
    this.channels = channels;
    replace(
      this.element,
      ...(rules.length > 0
        ? rules.map((one) => this.card(one))
        : [
            empty(
              "git-branch",
              "No rule yet",
              "A rule sends alerts to channels by query, tag, severity, region, feed or hour, and further if nobody answers.",
            ),
          ]),
    );
  }

  private card(one: Rule): HTMLElement {
    const channels = new Map(this.channels.map((channel) => [channel.id, channel.name]));
    const teams = new Map(this.me.teams.map((team) => [team.id, team.name]));
    const enabled = h("input", {
      type: "checkbox",
      checked: one.enabled,
      disabled: !one.editable,
      "aria-label": `The rule ${one.name} is on`,
    });
    enabled.addEventListener("change", () => {
      call(`routing-rules/${one.id}/`, { method: "PATCH", body: { enabled: enabled.checked } }).catch((error: unknown) => {
        enabled.checked = !enabled.checked;
        fail(error);
      });
    });
    return h(
      "div",
      { class: "channel rule" },
      h(
        "div",
        { class: "grow" },
        h("strong", {}, one.name),
        h("div", { class: "small muted" }, conditionWords(one)),
        h("div", { class: "small faint" }, `To ${targetWords(one, channels, teams)}`),
      ),
      one.editable ? button("Remove", { kind: "button-quiet button-danger button-sm", onClick: () => void this.remove(one) }) : null,
      h("label", { class: "switch" }, enabled, h("span", {})),
    );
  }

  private async remove(one: Rule): Promise<void> {
    if (!(await confirmDanger("Remove this rule?", `“${one.name}” sends no more alerts.`, "Remove rule"))) return;
    try {
      await call(`routing-rules/${one.id}/`, { method: "DELETE" });
      await this.load();
    } catch (error) {
      fail(error);
    }
  }

  /** What all rules and channels would do with the alerts of the last day. */
  async openDryRun(): Promise<void> {
    try {
      const found = await get("routing-rules/dry-run", dryRun);
      const dialog = openDialog("The last day's alerts", outcome(found));
      dialog.foot.append(button("Close", { onClick: dialog.close }));
    } catch (error) {
      fail(error);
    }
  }

  async openNew(): Promise<void> {
    let queries: Named[], regions: Named[], people: Named[];
    try {
      // Channels too: one may have been made a moment ago.
      [queries, regions, people, this.channels] = await Promise.all([
        getAll("queries/?page_size=500", named, 2000),
        getAll("regions/?page_size=500", named, 2000),
        this.people(),
        getAll("channels/", channelParser),
      ]);
    } catch (error) {
      fail(error);
      return;
    }
    const name = h("input", { class: "input", id: "rule-name", maxlength: 100, placeholder: "Night shift" });
    const severity = choice(
      "rule-severity",
      SEVERITIES.map((one) => [one, `${SEVERITY_NAMES[one]} and above`]),
    );
    severity.value = "high";
    const feed = choice("rule-feed", [["", "Every feed"], ...this.feeds.map((one): [string, string] => [one, one])]);
    const query = choice("rule-query", [
      ["", "Every query"],
      ...queries.map((one): [string, string] => [one.id, `${one.name} (${one.feed})`]),
    ]);
    const region = choice("rule-region", [
      ["", "Any region, or none"],
      ...regions.map((one): [string, string] => [one.id, `${one.name} (${one.feed})`]),
    ]);
    const tags = h("input", { class: "input", id: "rule-tags", placeholder: "harbour, night" });
    const from = h("input", { class: "input", type: "time", id: "rule-from" });
    const until = h("input", { class: "input", type: "time", id: "rule-until" });
    const days = choice("rule-day", [
      ["", "Every day"],
      ["0,1,2,3,4", "Monday to Friday"],
      ["5,6", "Saturday and Sunday"],
      ...DAYS.map((day, i): [string, string] => [String(i), day]),
    ]);
    const after = h("input", { class: "input", type: "number", id: "rule-after", min: 0, value: 0 });
    const targets = choice("rule-to", [
      ...this.channels.filter((one) => one.editable).map((one): [string, string] => [`channels ${one.id}`, `The channel “${one.name}”`]),
      ...this.me.teams.map((one): [string, string] => [`teams ${one.id}`, `All channels of ${one.name}`]),
      ...people.map((one): [string, string] => [`people ${one.name}`, `What ${one.name} keeps for themselves`]),
    ]);
    const place = h("div", { class: "stack", role: "status" });
    const body = (): Record<string, unknown> => {
      const [kind = "channels", ...rest] = targets.value.split(" ");
      const target = rest.join(" ");
      return {
        name: name.value.trim(),
        min_severity: severity.value,
        feed: feed.value === "" ? null : feed.value,
        queries: query.value === "" ? [] : [Number(query.value)],
        regions: region.value === "" ? [] : [Number(region.value)],
        tags: tags.value
          .split(",")
          .map((tag) => tag.trim())
          .filter((tag) => tag !== ""),
        days: days.value === "" ? [] : days.value.split(",").map(Number),
        from_time: from.value === "" ? null : from.value,
        until_time: until.value === "" ? null : until.value,
        zone: this.me.time_zone,
        after_minutes: Number(after.value),
        ...(target === "" ? {} : { [kind]: [kind === "people" ? target : Number(target)] }),
      };
    };
    const dialog = openDialog(
      "New rule",
      field("name", "Name", name),
      field("channels", "Send to", targets),
      field("min_severity", "Alerts of", severity),
      field("feed", "Feed", feed),
      field("queries", "Query", query),
      field("regions", "Region that the query names", region),
      field("tags", "Tags of the query, one of", tags),
      field("days", "Days", days),
      h("div", { class: "row" }, field("from_time", "From", from), field("until_time", "Until", until)),
      h("p", { class: "hint" }, `In ${this.me.time_zone.replaceAll("_", " ")}; an end before the beginning is on the next day.`),
      field("after_minutes", "Only if nobody acknowledged within minutes", after),
      place,
    );
    const failed = (error: unknown): void => {
      const isRefused = error instanceof ApiError && error.status === 400;
      if (!isRefused || showFaults(dialog.body, error.faults).length > 0) fail(error);
    };
    const showOutcome = (found: DryRun): void => {
      showFaults(dialog.body, []);
      replace(place, outcome(found));
      place.scrollIntoView({ block: "nearest" });
    };
    dialog.foot.append(
      button("Cancel", { onClick: dialog.close }),
      button("Try on the last day", {
        onClick: () =>
          void post("routing-rules/dry-run", { ...body(), name: name.value.trim() || "New rule" }, dryRun).then(showOutcome, failed),
      }),
      button("Make rule", {
        kind: "button-primary",
        onClick: () =>
          void post("routing-rules/", body(), ruleParser).then((made) => {
            dialog.close();
            toast(`“${made.name}” is on.`, "good");
            return this.load();
          }, failed),
      }),
    );
  }

  /** Members of the reader's teams. */
  private async people(): Promise<Named[]> {
    const teams = await getAll("teams/", record({ members: list(named) }));
    const found = new Map(teams.flatMap((team) => team.members).map((one) => [one.name, one]));
    return [...found.values()].sort((a, b) => a.name.localeCompare(b.name));
  }
}

function outcome(found: DryRun): HTMLElement {
  if (found.alerts === 0) return h("p", { class: "muted" }, "There was no alert in the last day.");
  return h(
    "div",
    { class: "stack dry-run" },
    h(
      "p",
      {},
      `${found.alerts} alerts in the last day; ${found.unreached === 0 ? "each reaches somebody" : `${found.unreached} reach nobody`}.`,
    ),
    ...found.results.map((one) =>
      h(
        "div",
        { class: "channel" },
        h(
          "div",
          { class: "grow" },
          h("strong", {}, one.channel.name),
          h("span", { class: "small muted" }, ` of ${one.channel.owner}`),
          h(
            "div",
            { class: "small muted" },
            one.rule === null ? "by itself" : `by the rule “${one.rule}”`,
            one.after_minutes === 0 ? "" : `, if nobody acknowledged within ${one.after_minutes} min`,
          ),
          h("div", { class: "small faint" }, one.alerts.map((alert) => [alert.query_name, ...alert.entities].join(" ")).join(" · ")),
        ),
        h("span", { class: "badge" }, String(one.count)),
      ),
    ),
  );
}

function choice(elementId: string, options: readonly (readonly [string, string])[]): HTMLSelectElement {
  return h("select", { class: "select", id: elementId }, ...options.map(([value, text]) => h("option", { value }, text)));
}

function field(pointer: string, text: string, control: HTMLElement): HTMLElement {
  return h("div", { class: "field", "data-pointer": `/${pointer}` }, h("label", { for: control.id }, text), control);
}
