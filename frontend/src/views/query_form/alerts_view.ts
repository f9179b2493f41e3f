/** Which answers open an alert, how grave it is, and where it goes. */

import { h, icon, replace } from "../../lib/dom";
import { SEVERITIES, type Channel, type QueryRow, type Severity } from "../../data/shapes";
import { kindVerb, SEVERITY_NAMES } from "../../lib/words";
import { section } from "./section";

export interface AlertSettings {
  severity: Severity;
  alert_kinds: string[];
  enabled: boolean;
}

export class AlertsView {
  readonly element: HTMLElement;
  private severity: Severity;
  private readonly chosen: Set<string>;
  private isEnabled: boolean;
  private kinds: readonly string[] = [];
  private readonly kindList = h("div", { class: "stack" });
  private readonly channelList = h("div", { class: "small muted" });

  constructor(
    private readonly stored: QueryRow | null,
    private readonly channels: readonly Channel[],
  ) {
    this.severity = stored?.severity ?? "low";
    this.chosen = new Set(stored?.alert_kinds);
    this.isEnabled = stored?.enabled ?? true;
    const enabled = h("input", { type: "checkbox", checked: this.isEnabled });
    enabled.addEventListener("change", () => (this.isEnabled = enabled.checked));
    this.element = section(
      "Whom does it alert?",
      h("div", { "data-pointer": "/alert_kinds" }, this.kindList),
      h("div", { class: "field" }, h("span", { class: "label" }, "Severity of its alerts"), this.severities()),
      this.channelList,
      h("label", { class: "check" }, h("span", { class: "switch" }, enabled, h("span", {})), h("span", {}, h("strong", {}, "Switched on"), h("span", { class: "hint" }, " A query that is off is kept but gives no answers."))),
    );
  }

  settings(): AlertSettings {
    return { severity: this.severity, alert_kinds: [...this.chosen], enabled: this.isEnabled };
  }

  /** The kinds of answers that the query can give now. */
  setKinds(kinds: readonly string[]): void {
    this.kinds = kinds;
    for (const kind of this.chosen) if (!kinds.includes(kind)) this.chosen.delete(kind);
    const boxes = this.kinds.map((kind) => this.kindBox(kind));
    replace(this.kindList, ...(boxes.length > 0 ? boxes : [h("p", { class: "small muted" }, "Choose what counts first.")]));
    this.showChannels();
  }

  private kindBox(kind: string): HTMLElement {
    const box = h("input", { type: "checkbox", id: `alert-${kind}`, checked: this.chosen.has(kind) });
    box.addEventListener("change", () => {
      if (box.checked) this.chosen.add(kind);
      else this.chosen.delete(kind);
      this.showChannels();
    });
    return h("label", { class: "check" }, box, h("span", {}, `Open an alert when something ${kindVerb(kind)}`));
  }

  private severities(): HTMLElement {
    const buttons = SEVERITIES.map((one) => {
      const element = h("button", { type: "button", "aria-pressed": String(one === this.severity) }, h("span", { class: `dot dot-${one}` }), SEVERITY_NAMES[one]);
      element.addEventListener("click", () => {
        this.severity = one;
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === element));
        this.showChannels();
      });
      return element;
    });
    return h("div", { class: "segmented", role: "group", "aria-label": "Severity" }, ...buttons);
  }

  private showChannels(): void {
    const rank = SEVERITIES.indexOf(this.severity);
    const { stored } = this;
    const reached = this.channels.filter((one) => one.enabled && SEVERITIES.indexOf(one.min_severity) <= rank && (one.queries.length === 0 || (stored !== null && one.queries.includes(stored.id))));
    const text = this.chosen.size === 0 ? "It opens no alerts: answers only appear on the map and the timeline. " : reached.length === 0 ? "Alerts appear here in Vedette; no channel carries them further. " : `Alerts also go to ${reached.map((one) => one.name).join(", ")}. `;
    replace(this.channelList, h("p", { class: "row" }, icon("webhook"), h("span", {}, text, h("a", { href: "/account/#channels" }, "Channels"))));
  }
}
