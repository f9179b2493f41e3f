/**
 * A choice of one region: a stored one by name or click, drawn on the map, from a
 * file, or entered as numbers.
 */

import { ApiError, post } from "../../lib/api";
import { importedShapes } from "../../lib/answers";
import { button, h, icon, iconButton, replace } from "../../lib/dom";
import { FEATURE } from "../../data/bulk_data";
import { asGeometry, describe, isReference, type Geometry, type Reference } from "../../lib/regions";
import { CoordinateTableView } from "../coordinate_table_view";
import { openDialog } from "../dialog_view";
import type { EditorContext, MapShape } from "../editors/editor";
import { fileButton } from "../region_editor_view";
import { fail, toast } from "../shell_view";
import { t } from "../../lib/texts";

export const REGION_FILES = ".geojson,.json,.kml,.kmz,.gpx,.zip,.gpkg,.csv";
const SHOWN = 200;

export interface RegionChoiceOptions {
  context: EditorContext;
  /**
   * As in the specification: a geometry, a circle, `{"region": name}`; any
   * other value begins empty.
   */
  value: unknown;
  /**
   * Prefix of the ids of its fields, and the id of its shape on the map:
   * must be unique on the page.
   */
  id: string;
  pointer: string;
  /** The region was changed, here or on the map; `isElsewhere`: the map should move to it. */
  onChange: (isElsewhere: boolean) => void;
}

export class RegionChoice {
  readonly element: HTMLElement;
  private geometry: Geometry | null = null;
  private reference: string | null = null;
  private readonly state = h("div", { role: "status" });
  private readonly input: HTMLInputElement;
  private readonly table: CoordinateTableView;
  private readonly details: HTMLDetailsElement;

  constructor(private readonly options: RegionChoiceOptions) {
    const { context, id, pointer, value } = options;
    const isGeographic = context.feed.crs === "geographic";
    if (isReference(value)) this.reference = value.region;
    else this.geometry = asGeometry(value);
    this.table = new CoordinateTableView(
      isGeographic ? [t("Longitude"), t("Latitude")] : ["x", "y"],
      isGeographic ? t("metres") : t("units of the plan"),
      (geometry) => this.take(geometry),
      () => context.map.shownBox(),
    );
    this.details = h("details", { class: "coordinates" }, h("summary", {}, t("Corners as numbers")), this.table.element);
    this.input = h("input", {
      class: "input",
      id: `${id}-stored`,
      list: `${id}-names`,
      placeholder:
        context.regions.length === 0 ? t("No stored regions yet") : t("Stored region ({count})", { count: context.regions.length }),
      "aria-label": t("Stored region"),
      autocomplete: "off",
    });
    this.input.addEventListener("input", (event) => {
      // A name may be a prefix of another: typing waits for its end; a pick from
      // the list counts immediately.
      if (!(event instanceof InputEvent) || event.inputType === "insertReplacementText") this.named(this.input.value);
    });
    this.input.addEventListener("change", () => this.entered(this.input.value.trim()));
    this.input.addEventListener("focus", () => this.fillNames());
    this.element = h(
      "div",
      { class: "stack region-choice", "data-pointer": pointer },
      this.state,
      h(
        "div",
        { class: "row" },
        h("div", { class: "grow" }, this.input, this.names),
        button(t("Draw"), { icon: "pentagon", onClick: () => this.draw() }),
        fileButton(t("Import"), REGION_FILES, (file) => void this.import(file)),
      ),
      this.details,
    );
    this.names.id = `${id}-names`;
    this.show();
    // One query for each region of a file: there is nothing to choose here.
    if (this.reference === FEATURE)
      replace(
        this.element,
        h("p", { class: "row small" }, icon("shapes"), h("span", {}, t("Each region of the file: one query for each."))),
      );
  }

  /** In the form of the specification; null while nothing is chosen. */
  value(): Geometry | Reference | null {
    return this.reference !== null ? { region: this.reference } : this.geometry;
  }

  /** For `EditorMap.show`; an active, drawn region has handles. */
  shape(active: boolean, label = ""): MapShape | null {
    const { id, context } = this.options;
    const geometry =
      this.reference === null ? this.geometry : (context.regions.find((row) => row.name === this.reference)?.geometry ?? null);
    if (geometry === null) return null;
    const onEdited = (changed: Geometry | null): void => this.take(changed);
    return { id, geometry, label, active, ...(active && this.reference === null ? { onEdited } : {}) };
  }

  /**
   * The next shape drawn on the map becomes the region; `begin` false only enables the map's tools.
   * While none is chosen, a click on a stored region chooses it.
   */
  draw(begin = true): void {
    if (this.reference === FEATURE) return;
    this.options.context.map.ask(
      "region",
      (drawn) => {
        if (Array.isArray(drawn)) return;
        this.take(drawn);
      },
      begin,
      this.value() === null ? (name) => this.named(name, false) : undefined,
    );
  }

  private readonly names = h("datalist", {});

  /** Thousands of names are rendered when they are first needed. */
  private fillNames(): void {
    const { regions } = this.options.context;
    if (this.names.childElementCount === 0) this.names.append(...regions.map((row) => h("option", { value: row.name })));
  }

  /** The name is complete: capitals do not matter, and an unknown name is reported. */
  private entered(text: string): void {
    const known = byName(this.options.context.regions, text);
    if (known === undefined && text !== "") {
      const unknown = t("No stored region is called “{name}”.", { name: text });
      replace(this.state, h("p", { class: "notice notice-high" }, icon("triangle-alert"), h("span", {}, unknown)));
      return;
    }
    this.input.value = known ?? "";
    replace(this.state, this.line());
    this.named(this.input.value);
  }

  private named(name: string, isElsewhere = true): void {
    const isKnown = this.options.context.regions.some((row) => row.name === name);
    if (name === (this.reference ?? "") || (!isKnown && name !== "")) return;
    this.reference = isKnown ? name : null;
    if (isKnown) this.geometry = null;
    this.show();
    this.options.onChange(isKnown && isElsewhere);
  }

  private take(geometry: Geometry | null, isElsewhere = false): void {
    this.reference = null;
    this.geometry = geometry;
    this.show();
    this.options.onChange(isElsewhere);
  }

  private show(): void {
    if (document.activeElement !== this.input) this.input.value = this.reference ?? "";
    this.table.show(this.reference === null ? this.geometry : null);
    this.details.hidden = this.reference !== null;
    replace(this.state, this.line());
  }

  private line(): HTMLElement {
    if (this.reference !== null)
      return h(
        "p",
        { class: "row small" },
        icon("link"),
        h(
          "span",
          { class: "grow" },
          t("Uses the stored region "),
          h("strong", {}, this.reference),
          t(". Changing it there changes it here."),
        ),
        this.remover(),
      );
    if (this.geometry !== null)
      return h(
        "p",
        { class: "row small" },
        icon("check"),
        h("span", { class: "grow" }, describe(this.geometry, this.options.context.feed.crs === "geographic")),
        this.remover(),
      );
    return h(
      "p",
      { class: "row small muted" },
      icon("pencil"),
      h(
        "span",
        {},
        this.options.context.regions.length === 0
          ? t("Draw it on the map, or import a file.")
          : t("Click a region on the map, draw one, choose one by name, or import a file."),
      ),
    );
  }

  private remover(): HTMLElement {
    return iconButton(t("Take another region"), "x", { kind: "button-quiet button-sm", onClick: () => this.another() });
  }

  private another(): void {
    const isByKeys = document.activeElement?.matches(":focus-visible") === true;
    this.take(null);
    // The button has been removed. With a pointer, the map is used next.
    if (isByKeys) this.input.focus();
    this.draw(false);
  }

  private async import(file: File): Promise<void> {
    const form = new FormData();
    form.append("file", file);
    form.append("feed", this.options.context.feed.name);
    form.append("dry_run", "true");
    try {
      this.choose(await post("regions/import", form, importedShapes));
    } catch (error) {
      if (error instanceof ApiError && error.faults.length > 0) toast(error.faults[0]!.message, "critical");
      else fail(error);
    }
  }

  private choose(answer: ReturnType<typeof importedShapes>): void {
    const found = answer.created.filter((row) => row.geometry !== null);
    if (found.length === 0) toast(answer.refused[0]?.faults[0]?.message ?? t("There is no region in this file."), "critical");
    else if (found.length === 1) this.take(found[0]!.geometry, true);
    else this.ask(found);
  }

  private ask(found: { name: string; geometry: Geometry | null }[]): void {
    const pick = (geometry: Geometry | null): void => {
      dialog.close();
      this.take(geometry, true);
    };
    const rows = found.slice(0, SHOWN).map((row) => button(row.name, { onClick: () => pick(row.geometry) }));
    const rest =
      found.length > SHOWN ? h("p", { class: "small muted" }, t("The first {SHOWN} of {count}.", { SHOWN, count: found.length })) : null;
    const dialog = openDialog(t("Which region?"), ...rows, rest);
    rows[0]?.focus();
  }
}

function byName(regions: readonly { name: string }[], text: string): string | undefined {
  const names = regions.map(({ name }) => name);
  const alike = names.filter((name) => name.toLowerCase() === text.toLowerCase());
  return names.find((name) => name === text) ?? (alike.length === 1 ? alike[0] : undefined);
}
