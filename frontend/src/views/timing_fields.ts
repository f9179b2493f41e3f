/** The fields for quiet hours, digests and limits of messages. */

import { clock, type Timing } from "../lib/timing";
import { h } from "../lib/dom";
import { choice, field } from "./form_parts";
import { t } from "../lib/texts";

export class TimingFields {
  readonly element: HTMLElement;
  private readonly from: HTMLInputElement;
  private readonly until: HTMLInputElement;
  private readonly digest: HTMLSelectElement;
  private readonly at: HTMLInputElement;
  private readonly passes: HTMLInputElement;
  private readonly group: HTMLSelectElement;
  private readonly minutes: HTMLInputElement;

  constructor(
    private readonly prefix: string,
    private readonly timing: Timing,
  ) {
    this.from = this.time("quiet-from", timing.quiet_from);
    this.until = this.time("quiet-until", timing.quiet_until);
    const digests = [
      ["", t("Immediately")],
      ["hourly", t("Together, every hour")],
      ["daily", t("Together, once a day")],
      ["weekly", t("Together, every Monday")],
    ] as const;
    this.digest = choice(`${prefix}-digest`, digests, timing.digest);
    this.at = this.time("digest-at", timing.digest_at);
    this.passes = h("input", { type: "checkbox", checked: timing.critical_passes });
    const groups = [
      ["", t("Each alert separately")],
      ["query", t("By query")],
      ["entity", t("By entity")],
      ["region", t("By region")],
    ] as const;
    this.group = choice(`${prefix}-group`, groups, timing.group_by);
    this.minutes = h("input", {
      class: "input",
      type: "number",
      id: `${prefix}-group-minutes`,
      min: 1,
      max: 1440,
      value: timing.group_minutes,
    });
    const at = field("digest_at", t("At"), this.at);
    const minutes = field("group_minutes", t("Within minutes"), this.minutes);
    const show = (): void => {
      at.hidden = this.digest.value !== "daily" && this.digest.value !== "weekly";
      minutes.hidden = this.group.value === "";
    };
    this.digest.addEventListener("change", show);
    this.group.addEventListener("change", show);
    show();
    this.element = h(
      "fieldset",
      { class: "stack", "data-pointer": "/zone" },
      h("legend", { class: "label" }, t("When messages come")),
      h("div", { class: "row row-fields" }, field("digest", t("Messages"), this.digest), at),
      h("div", { class: "row row-fields" }, field("group_by", t("Related alerts"), this.group), minutes),
      h("p", { class: "hint" }, t("The first of a group is sent immediately, the others together.")),
      h(
        "div",
        { class: "row row-fields" },
        field("quiet_from", t("Quiet from"), this.from),
        field("quiet_until", t("Quiet until"), this.until),
      ),
      h(
        "p",
        { class: "hint" },
        t("In {value}. Messages wait until the quiet hours end, and are then sent together.", { value: timing.zone.replaceAll("_", " ") }),
      ),
      h("label", { class: "check" }, this.passes, h("span", {}, t("Critical alerts are sent immediately even then"))),
    );
  }

  values(): Timing {
    return {
      zone: this.timing.zone,
      quiet_from: this.from.value === "" ? null : this.from.value,
      quiet_until: this.until.value === "" ? null : this.until.value,
      digest: (["hourly", "daily", "weekly"] as const).find((one) => one === this.digest.value) ?? "",
      digest_at: this.at.value === "" ? "08:00" : this.at.value,
      critical_passes: this.passes.checked,
      group_by: (["query", "entity", "region"] as const).find((one) => one === this.group.value) ?? "",
      group_minutes: Number(this.minutes.value),
    };
  }

  private time(name: string, value: string | null): HTMLInputElement {
    return h("input", { class: "input", type: "time", id: `${this.prefix}-${name}`, value: value === null ? "" : clock(value) });
  }
}
