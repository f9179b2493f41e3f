/** Which answers open an alert, its severity, and its channels. */

import { h, replace } from "../../lib/dom";
import { SEVERITIES, type Channel, type QueryRow, type Severity } from "../../lib/shapes";
import { kindClause, SEVERITY_NAMES } from "../../lib/words";
import { section } from "./section";
import { t } from "../../lib/texts";

export interface AlertSettings {
  severity: Severity;
  alert_kinds: string[];
  enabled: boolean;
  /** Ids of the channels that are limited to chosen queries and include this one. */
  channels: string[];
  calls: "each" | "once";
  calls_per_hour: number | null;
}

export class AlertsView {
  readonly element: HTMLElement;
  private severity: Severity;
  private readonly chosen: Set<string>;
  private readonly carriers: Set<string>;
  private isEnabled: boolean;
  private readonly once: HTMLInputElement;
  private readonly perHour: HTMLInputElement;
  private kinds: readonly string[] = [];
  private readonly kindList = h("div", { class: "stack" });
  private readonly channelList = h("div", { class: "field", "data-pointer": "/channels" });

  constructor(
    stored: QueryRow | null,
    private readonly channels: readonly Channel[],
  ) {
    this.severity = stored?.severity ?? "low";
    this.chosen = new Set(stored?.alert_kinds);
    this.carriers = new Set(stored?.channels);
    this.isEnabled = stored?.enabled ?? true;
    this.once = h("input", { type: "checkbox", id: "calls-once", checked: stored?.calls === "once" });
    this.perHour = h("input", { class: "input", type: "number", id: "calls-per-hour", min: 1, max: 600, placeholder: t("no limit") });
    if (typeof stored?.calls_per_hour === "number") this.perHour.value = String(stored.calls_per_hour);
    const enabled = h("input", { type: "checkbox", checked: this.isEnabled });
    enabled.addEventListener("change", () => (this.isEnabled = enabled.checked));
    this.element = section(
      t("Who is alerted?"),
      h("div", { "data-pointer": "/alert_kinds" }, this.kindList),
      h("span", { class: "hint" }, t("Answers that have ended or already hold when the query begins are stored but open no alert.")),
      h("div", { class: "field" }, h("span", { class: "label" }, t("Severity of its alerts")), this.severities()),
      this.channelList,
      this.calls(),
      h(
        "label",
        { class: "check" },
        h("span", { class: "switch" }, enabled, h("span", {})),
        h(
          "span",
          {},
          h("strong", {}, t("Switched on")),
          h("span", { class: "hint" }, t(" A query that is off is kept but gives no answers.")),
        ),
      ),
    );
  }

  settings(): AlertSettings {
    const calls = this.once.checked ? "once" : "each";
    const calls_per_hour = this.perHour.value === "" ? null : Number(this.perHour.value);
    return {
      severity: this.severity,
      alert_kinds: [...this.chosen],
      enabled: this.isEnabled,
      channels: [...this.carriers],
      calls,
      calls_per_hour,
    };
  }

  /** How often messages are sent; all alerts are on the desk in any case. */
  private calls(): HTMLElement {
    return h(
      "div",
      { class: "stack", "data-pointer": "/calls" },
      h("label", { class: "check" }, this.once, h("span", {}, t("No further message while an alert about the same entities lasts"))),
      h(
        "div",
        { class: "field", "data-pointer": "/calls_per_hour" },
        h("label", { for: "calls-per-hour" }, t("Messages an hour, at most")),
        this.perHour,
        h("span", { class: "hint" }, t("Alerts beyond that arrive in one message. All alerts are on the desk.")),
      ),
    );
  }

  /** The kinds of answers that the query can give now. */
  setKinds(kinds: readonly string[]): void {
    this.kinds = kinds;
    for (const kind of this.chosen) if (!kinds.includes(kind)) this.chosen.delete(kind);
    const boxes = this.kinds.map((kind) => this.kindBox(kind));
    replace(this.kindList, ...(boxes.length > 0 ? boxes : [h("p", { class: "small muted" }, t("First choose what counts."))]));
    this.showChannels();
  }

  private kindBox(kind: string): HTMLElement {
    const box = h("input", { type: "checkbox", id: `alert-${kind}`, checked: this.chosen.has(kind) });
    box.addEventListener("change", () => {
      if (box.checked) this.chosen.add(kind);
      else this.chosen.delete(kind);
      this.showChannels();
    });
    return h("label", { class: "check" }, box, h("span", {}, t("Open an alert when {kind}", { kind: kindClause(kind) })));
  }

  private severities(): HTMLElement {
    const buttons = SEVERITIES.map((one) => {
      const element = h(
        "button",
        { type: "button", "aria-pressed": String(one === this.severity) },
        h("span", { class: `dot dot-${one}` }),
        SEVERITY_NAMES[one],
      );
      element.addEventListener("click", () => {
        this.severity = one;
        // As a field would: the form has changed.
        element.dispatchEvent(new Event("input", { bubbles: true }));
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === element));
        this.showChannels();
      });
      return element;
    });
    return h("div", { class: "segmented", role: "group", "aria-label": t("Severity") }, ...buttons);
  }

  private showChannels(): void {
    const isQuiet = this.chosen.size === 0;
    this.channelList.hidden = isQuiet;
    const rows = this.channels.map((channel) => this.channelBox(channel));
    const none = h("p", { class: "small muted" }, t("No channel yet: alerts appear only here in Vedette."));
    replace(
      this.channelList,
      h(
        "div",
        { class: "row spread" },
        h("span", { class: "label" }, t("Where else its alerts are sent")),
        h("a", { class: "small", href: "/account/#channels" }, t("Channels")),
      ),
      ...(rows.length > 0 ? rows : [none]),
    );
  }

  private channelBox(channel: Channel): HTMLElement {
    const isFixed = channel.all_queries || !channel.editable;
    const isOn = channel.all_queries || this.carriers.has(channel.id);
    const box = h("input", { type: "checkbox", id: `channel-${channel.id}`, checked: isOn, disabled: isFixed });
    box.addEventListener("change", () => {
      if (box.checked) this.carriers.add(channel.id);
      else this.carriers.delete(channel.id);
      this.showChannels();
      document.getElementById(box.id)?.focus();
    });
    return h(
      "label",
      { class: "check" },
      box,
      h("span", {}, channel.name, h("span", { class: "hint block" }, this.channelText(channel, isOn))),
    );
  }

  /** Whether this query's alerts are sent to the channel. */
  private channelText(channel: Channel, isOn: boolean): string {
    const isGrave = SEVERITIES.indexOf(this.severity) >= SEVERITIES.indexOf(channel.min_severity);
    if (!channel.enabled) return t("It is switched off.");
    if (isOn && !isGrave) return t("Gets only {value} alerts and above.", { value: SEVERITY_NAMES[channel.min_severity].toLowerCase() });
    if (channel.all_queries) return t("Gets the alerts of every query.");
    return channel.editable
      ? isOn
        ? t("Gets this query's alerts.")
        : t("Only for chosen queries.")
      : t("You may see it, but not change what is sent to it.");
  }
}
