/** A file of regions, one query for each: a dry run, and the registration. */

import { ApiError, post, reason } from "../../lib/api";
import { empty, h, icon, replace } from "../../lib/dom";
import { bulkAnswer, bulkRows, bulkSummary, type BulkAnswer, type BulkRow } from "../../data/bulk_data";
import type { Feed } from "../../lib/shapes";
import { Latest } from "../../lib/latest";
import { formatNumber } from "../../lib/time";
import type { MapShape } from "../editors/editor";
import { fileButton } from "../region_editor_view";
import type { AlertSettings } from "./alerts_view";
import { REGION_FILES } from "./region_choice";
import { section } from "./section";
import { t } from "../../lib/texts";

/** The number of table rows that are rendered. */
const SHOWN = 300;
/** A file of thousands of regions is checked as a whole. */
const CHECK_AFTER_MS = 1_000;
const BADGES: Record<BulkRow["state"], [string, string]> = {
  refused: ["badge-critical", t("refused")],
  other: ["badge-high", t("differs")],
  same: ["", t("there")],
  new: ["badge-good", t("new")],
};

export interface BulkHandlers {
  template: () => Record<string, unknown>;
  settings: () => AlertSettings;
  /** The file's regions, for the map. */
  onRegions: (shapes: MapShape[]) => void;
  /** How many can be registered now; null: the file has not been checked yet. */
  onReady: (count: number | null) => void;
  /** The server refused the template or the settings. */
  onFaults: (error: unknown) => void;
}

export class BulkView {
  /** The controls for file and names, for the form's column. */
  readonly fields: HTMLElement;
  /** The table, next to the map. */
  readonly element: HTMLElement;
  private readonly naming = h("input", { class: "input", id: "bulk-naming", value: "{name}", autocomplete: "off" });
  private readonly nameField = h("input", { class: "input", id: "bulk-name-field", placeholder: t("name"), autocomplete: "off" });
  private readonly partial = h("input", { type: "checkbox", id: "bulk-partial" });
  private readonly fileLine = h(
    "p",
    { class: "row small muted" },
    icon("file-up"),
    h("span", {}, t("GeoJSON, KML, KMZ, GPX, Shapefile (zip), GeoPackage or CSV with WKT; at most 5,000 regions and 20 MB.")),
  );
  private readonly result = h("div", { class: "bulk-result" });
  private file: File | null = null;
  private readonly question = new Latest<[file: File]>(
    async (signal, file) => {
      this.result.setAttribute("aria-busy", "true");
      try {
        this.show(await this.send(file, true, signal));
      } finally {
        this.result.removeAttribute("aria-busy");
      }
    },
    (error) => this.failed(error),
  );

  constructor(
    private readonly feed: Feed,
    private readonly handlers: BulkHandlers,
  ) {
    this.fields = section(
      t("The file"),
      this.fileLine,
      h(
        "div",
        { class: "row", "data-pointer": "/file" },
        fileButton(t("Choose a file"), REGION_FILES, (file) => this.take(file), "button-primary"),
      ),
      h(
        "div",
        { class: "bulk-names" },
        h(
          "div",
          { class: "field", "data-pointer": "/naming" },
          h("label", { for: "bulk-naming" }, t("Names of the queries")),
          this.naming,
          h("span", { class: "hint" }, t("{name} is the region's, {row} its place.")),
        ),
        h(
          "div",
          { class: "field", "data-pointer": "/name_field" },
          h("label", { for: "bulk-name-field" }, t("Property with the name")),
          this.nameField,
        ),
      ),
    );
    this.element = h(
      "section",
      { class: "panel preview bulk-panel", "aria-label": t("Queries of the file") },
      h("div", { class: "panel-head" }, h("h2", {}, t("What it will make"))),
      this.result,
    );
    for (const input of [this.naming, this.nameField]) input.addEventListener("change", () => void this.check());
    this.partial.addEventListener("change", () => void this.check());
    replace(
      this.result,
      empty("file-up", t("Choose a file"), t("Each of its regions becomes a query like the one in the form, all in one step.")),
    );
  }

  private take(file: File): void {
    this.file = file;
    replace(this.fileLine, icon("check"), h("span", {}, file.name));
    void this.check();
  }

  /** A dry run of the file with the current form. */
  async check(): Promise<void> {
    if (this.file !== null) await this.question.now(this.file);
  }

  /** The form has changed: a dry run after a pause. */
  changed(): void {
    if (this.file !== null) this.question.after(CHECK_AFTER_MS, this.file);
  }

  /** Registers; returns the response, or null if it was refused (after showing why). */
  async register(): Promise<BulkAnswer | null> {
    if (this.file === null) return null;
    this.question.drop();
    try {
      return await this.send(this.file, false);
    } catch (error) {
      if (error instanceof ApiError && error.status === 400) await this.check();
      else this.handlers.onFaults(error);
      return null;
    }
  }

  private send(file: File, isDry: boolean, signal?: AbortSignal): Promise<BulkAnswer> {
    const { severity, alert_kinds, enabled, channels, calls, calls_per_hour } = this.handlers.settings();
    const form = new FormData();
    const fields = {
      feed: this.feed.name,
      template: JSON.stringify(this.handlers.template()),
      naming: this.naming.value,
      name_field: this.nameField.value,
      severity,
      alert_kinds: JSON.stringify(alert_kinds),
      enabled: String(enabled),
      calls,
      ...(calls_per_hour === null ? {} : { calls_per_hour: String(calls_per_hour) }),
      partial: String(this.partial.checked),
      dry_run: String(isDry),
    };
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    for (const channel of channels) form.append("channels", channel);
    form.append("file", file);
    return post("queries/bulk", form, bulkAnswer, signal);
  }

  private failed(error: unknown): void {
    this.handlers.onReady(null);
    replace(this.result, empty("circle-alert", t("It cannot be read yet"), reason(error)));
    if (error instanceof ApiError) this.handlers.onFaults(error);
  }

  private show(answer: BulkAnswer): void {
    const rows = bulkRows(answer);
    const isFaulty = answer.refused.length > 0;
    const choice = h("label", { class: "check" }, this.partial, h("span", {}, t("Register the valid ones and leave out the refused")));
    const table = h(
      "table",
      { class: "table table-tight" },
      h("thead", {}, h("tr", {}, ...[t("Row"), t("Query"), "", ""].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, ...rows.slice(0, SHOWN).map(tableRow)),
    );
    const rest =
      rows.length > SHOWN
        ? h("p", { class: "small faint" }, t("The first {SHOWN} of {count} rows.", { SHOWN, count: formatNumber(rows.length) }))
        : null;
    replace(
      this.result,
      h("div", { class: "preview-summary" }, h("p", {}, h("strong", {}, bulkSummary(answer))), isFaulty ? choice : null),
      h("div", { class: "table-wrap bulk-table" }, table, rest),
    );
    this.handlers.onRegions(
      answer.queries.flatMap(({ row, name, geometry }) =>
        geometry === null ? [] : [{ id: `row-${row}`, geometry, label: name, active: false }],
      ),
    );
    this.handlers.onReady(isFaulty && !this.partial.checked ? 0 : answer.queries.length);
  }
}

function tableRow({ row, name, state, text }: BulkRow): HTMLElement {
  const [kind, word] = BADGES[state];
  return h(
    "tr",
    {},
    h("td", { class: "num faint" }, row),
    h("td", {}, name),
    h("td", {}, h("span", { class: `badge ${kind}` }, word)),
    h("td", { class: "small" }, text),
  );
}
