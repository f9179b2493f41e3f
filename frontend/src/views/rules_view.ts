/** Routing rules: which alerts go to which channels; a dry run on the alerts of the last day. */

import { channel as channelParser, type Channel, type Me } from "../lib/shapes";
import { conditionWords, dryRun, rule as ruleParser, targetWords, type Rule } from "../data/rule_data";
import { call, get, getAll } from "../lib/api";
import { shift } from "../lib/answers";
import { button, empty, h, replace } from "../lib/dom";
import { confirmDanger, openDialog } from "./dialog_view";
import { outcome } from "./dry_run_view";
import { openRuleForm } from "./rule_form_view";
import { fail } from "./shell_view";
import { warningNotice } from "./warning_view";
import { t } from "../lib/texts";

export class RulesView {
  readonly element = h("div", { class: "stack" });
  private channels: Channel[] = [];
  private shifts = new Map<string, string>();

  constructor(
    private readonly me: Me,
    private readonly feeds: readonly string[],
  ) {}

  async load(): Promise<void> {
    const [rules, channels, shifts] = await Promise.all([
      getAll("routing-rules/", ruleParser),
      getAll("channels/", channelParser),
      getAll("shifts/", shift),
    ]);
    this.channels = channels;
    this.shifts = new Map(shifts.map((one) => [one.id, one.name]));
    replace(
      this.element,
      ...(rules.length > 0
        ? rules.map((one) => this.card(one))
        : [
            empty(
              "git-branch",
              t("No rule yet"),
              t("A rule sends alerts to channels by query, tag, severity, region, feed or hour, and escalates if nobody acknowledges."),
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
      "aria-label": t("The rule {name} is on", { name: one.name }),
    });
    enabled.addEventListener("change", () => {
      call(`routing-rules/${one.id}/`, { method: "PATCH", body: { enabled: enabled.checked } }).catch((error: unknown) => {
        enabled.checked = !enabled.checked;
        fail(error);
      });
    });
    return h(
      "div",
      { class: "channel rule", role: "group", "aria-label": one.name },
      h(
        "div",
        { class: "grow" },
        h("strong", {}, one.name),
        h("div", { class: "small muted" }, conditionWords(one)),
        h("div", { class: "small faint" }, t("To {one}", { one: targetWords(one, channels, teams, this.shifts) })),
        one.warning === "" ? null : warningNotice(one.warning),
      ),
      one.editable ? button(t("Edit"), { kind: "button-quiet button-sm", onClick: () => this.openForm(one) }) : null,
      one.editable ? button(t("Remove"), { kind: "button-quiet button-danger button-sm", onClick: () => this.remove(one) }) : null,
      h("label", { class: "switch" }, enabled, h("span", {})),
    );
  }

  private async remove(one: Rule): Promise<void> {
    const effect = t("“{name}” sends no more alerts.", { name: one.name });
    if (!(await confirmDanger(t("Remove this rule?"), effect, t("Remove rule")))) return;
    try {
      await call(`routing-rules/${one.id}/`, { method: "DELETE" });
      await this.load();
    } catch (error) {
      fail(error);
    }
  }

  /** A dry run of all rules and channels on the alerts of the last day. */
  async openDryRun(): Promise<void> {
    try {
      const found = await get("routing-rules/dry-run", dryRun);
      const dialog = openDialog(t("The last day's alerts"), outcome(found));
      dialog.foot.append(button(t("Close"), { onClick: dialog.close }));
    } catch (error) {
      fail(error);
    }
  }

  openNew(): Promise<void> {
    return this.openForm(null);
  }

  private async openForm(stored: Rule | null): Promise<void> {
    try {
      await openRuleForm(this.me, this.feeds, stored, () => this.load());
    } catch (error) {
      fail(error);
    }
  }
}
