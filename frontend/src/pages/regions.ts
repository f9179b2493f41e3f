import { ApiError, call, getAll, type Fault, post, query as address } from "../lib/api";
import { button, download, empty, h, linkButton, replace } from "../lib/dom";
import { mayMake } from "../lib/roles";
import { describe, rectangleIn, type Geometry } from "../lib/regions";
import { region as regionParser, type Feed, type RegionRow } from "../lib/shapes";
import { lastFeed, setLastFeed } from "../lib/preferences";
import { attachMenu } from "../views/menu_view";
import { CoordinateTableView } from "../views/coordinate_table_view";
import { importFile } from "../views/region_import";
import { confirmDanger } from "../views/dialog_view";
import { distinct, showFaults } from "../views/faults_view";
import { acceptFiles } from "../views/file_drops";
import { boundsOf } from "../views/map_view";
import { replaceable } from "../views/replacing";
import { fileButton, RegionEditorView } from "../views/region_editor_view";
import { REGION_FILES } from "../views/query_form/region_choice";
import { fail, openShell, pageFrame, toast } from "../views/shell_view";
import { t } from "../lib/texts";

const shell = openShell();
const name = new URLSearchParams(location.search).get("feed") ?? lastFeed();
const start = shell.feeds.find((feed) => feed.name === name) ?? shell.feeds[0];

class RegionsPage {
  private rows: RegionRow[] = [];
  private current: RegionRow | null = null;
  /** The region on the map if it differs from the stored one, or is new. */
  private draft: Geometry | null = null;
  /** The region whose card is open: its id, or "new". */
  private shownFor = "";
  /** Of the open card. */
  private readonly description = h("span", { class: "small faint" });
  private fields: { name: HTMLInputElement; tags: HTMLInputElement } | null = null;
  private readonly discarder = button(t("Discard"), { kind: "button-quiet", onClick: () => this.select(this.current) });
  private readonly search = h("input", {
    class: "input",
    type: "search",
    placeholder: t("Search regions"),
    "aria-label": t("Search regions"),
  });
  private readonly list = h("ul", { class: "region-list" });
  private readonly card = h("div", { class: "region-card" });
  private readonly editor: RegionEditorView;
  private readonly table: CoordinateTableView;

  constructor(private readonly feed: Feed) {
    setLastFeed(feed.name);
    const isGeographic = feed.crs === "geographic";
    const feeds = h(
      "select",
      { class: "select", "aria-label": t("Feed") },
      ...shell.feeds.map((one) =>
        h("option", { value: one.name, selected: one.name === feed.name }, one.title === "" ? one.name : one.title),
      ),
    );
    feeds.addEventListener("change", () => {
      location.assign(address("/regions/", { feed: feeds.value }));
      // The reader may stay because of unsaved changes.
      feeds.value = feed.name;
    });
    const exporter = button(t("Export"), { icon: "download" });
    attachMenu(exporter, () =>
      (["geojson", "kml", "gpkg", "csv"] as const).map((format) => ({
        content: [h("span", {}, { geojson: "GeoJSON", kml: "KML", gpkg: "GeoPackage", csv: "CSV" }[format])],
        onPick: () => download(address("/api/v1/regions/export", { feed: feed.name, format })),
      })),
    );
    const map = h("div", { class: "regions-map" });
    const side = h(
      "aside",
      { class: "regions-side", "aria-label": t("Regions") },
      h(
        "div",
        { class: "regions-tools" },
        feeds,
        this.search,
        mayMake(shell.me) ? button(t("New region by numbers"), { icon: "plus", kind: "button-sm", onClick: () => this.begin() }) : null,
      ),
      this.list,
      this.card,
    );
    const page = h("div", { class: "regions-page" }, side, map);
    replace(
      shell.root,
      h(
        "header",
        { class: "bar" },
        h("h1", {}, t("Regions")),
        h(
          "div",
          { class: "bar-actions" },
          mayMake(shell.me) ? fileButton(t("Import"), REGION_FILES, (file) => void this.importFiles([file])) : null,
          exporter,
        ),
      ),
      page,
    );
    if (mayMake(shell.me))
      acceptFiles(
        shell.root,
        (files) => void this.importFiles(files),
        (isOver) => page.classList.toggle("regions-drop", isOver),
      );
    this.editor = new RegionEditorView(map, feed, (geometry) => this.edited(geometry), [], mayMake(shell.me));
    this.table = new CoordinateTableView(
      isGeographic ? [t("Longitude"), t("Latitude")] : ["x", "y"],
      isGeographic ? t("metres") : t("units of the plan"),
      (geometry) => {
        this.draft = geometry;
        this.editor.showRegion(geometry, true);
        this.description.textContent = this.describe(geometry);
        this.showDiscarder();
      },
      () => this.editor.shownBox(),
    );
    this.search.addEventListener("input", () => this.showList());
    window.addEventListener("beforeunload", (event) => {
      if (this.isChanged()) event.preventDefault();
    });
    void this.load(true);
  }

  private async load(fit = false): Promise<void> {
    try {
      this.rows = await getAll(address("regions/", { feed: this.feed.name, page_size: 1000 }), regionParser, 20_000);
      this.showList();
      this.showContext();
      if (fit && this.feed.view === null) this.fitTo(this.rows);
      this.showCard();
    } catch (error) {
      fail(error);
    }
  }

  private fitTo(rows: readonly { geometry: Geometry }[]): void {
    const box = boundsOf(
      rows.map((row) => row.geometry),
      this.feed.crs === "geographic",
    );
    if (box !== null) this.editor.feedMap.fit(box);
  }

  private showContext(): void {
    this.editor.setContext(
      this.rows
        .filter((row) => row.id !== this.current?.id)
        .map((row) => ({ id: row.id, name: row.name, geometry: row.geometry, colour: null })),
    );
  }

  private showList(): void {
    const wanted = this.search.value.trim().toLowerCase();
    const shown = this.rows.filter((row) => `${row.name} ${row.tags.join(" ")}`.toLowerCase().includes(wanted));
    if (this.rows.length === 0) {
      replace(
        this.list,
        h(
          "li",
          {},
          empty(
            "shapes",
            t("No regions yet"),
            mayMake(shell.me)
              ? t("Draw one on the map, or import a file: GeoJSON, KML, GeoPackage, CSV, or a Shapefile as zip. Queries can then name it.")
              : t("To make one, you need the role analyst in a team."),
          ),
        ),
      );
      return;
    }
    const items = shown.slice(0, 500).map((row) =>
      h(
        "li",
        {},
        h(
          "button",
          {
            type: "button",
            class: "region-item",
            "aria-current": String(row.id === this.current?.id),
            onClick: () => this.turnTo(row),
          },
          h(
            "span",
            { class: "grow" },
            h("span", { class: "region-name truncate" }, row.name),
            h("span", { class: "small faint" }, this.describe(row.geometry)),
          ),
          row.used_by.length > 0 ? h("span", { class: "badge", title: t("Queries that use it") }, row.used_by.length) : null,
        ),
      ),
    );
    replace(
      this.list,
      ...items,
      shown.length > 500 ? h("li", { class: "hint" }, t("{count} more: search to find them", { count: shown.length - 500 })) : null,
    );
  }

  private async turnTo(row: RegionRow): Promise<void> {
    if (!(await this.mayDiscard())) return;
    this.select(row);
    // On a small screen the list is below the map.
    this.editor.element.scrollIntoView({ block: "nearest" });
  }

  /** Whether the open region is not saved as it is shown: its shape, name or tags. */
  private isChanged(): boolean {
    const { current, draft, fields } = this;
    if (draft !== null || current === null || fields === null) return draft !== null;
    return fields.name.value !== current.name || fields.tags.value !== current.tags.join(", ");
  }

  /** Whether nothing is unsaved, or the reader discards it. */
  private async mayDiscard(): Promise<boolean> {
    if (!this.isChanged()) return true;
    return this.current === null
      ? confirmDanger(t("Discard what you have drawn?"), t("It is not saved."), t("Discard"))
      : confirmDanger(t("Discard your changes of “{name}”?", { name: this.current.name }), t("They are not saved."), t("Discard"));
  }

  private isAt(row: RegionRow): boolean {
    return !this.isChanged() && this.current?.id === row.id;
  }

  /** Shows a region as it is stored. */
  private select(row: RegionRow | null): void {
    this.current = row;
    this.draft = null;
    this.shownFor = "";
    this.showContext();
    this.editor.showRegion(row?.geometry ?? null, row?.editable ?? true, true);
    this.showList();
    this.showCard();
  }

  /**
   * A rectangle in the middle of the map, its corners as numbers: for keyboards,
   * and where numbers are known.
   */
  private async begin(): Promise<void> {
    if (!(await this.mayDiscard())) return;
    this.select(null);
    const geometry = rectangleIn(this.editor.shownBox());
    this.editor.showRegion(geometry, true);
    this.edited(geometry);
    this.card.querySelector("details")?.setAttribute("open", "");
    this.card.querySelector<HTMLElement>("#region-name")?.focus();
  }

  /** The shape was changed on the map; null: it is to be removed. */
  private edited(geometry: Geometry | null): void {
    const row = this.current;
    if (geometry === null && row !== null) {
      this.editor.showRegion(this.draft ?? row.geometry, row.editable);
      void this.remove(row);
      return;
    }
    this.draft = geometry;
    this.showCard();
  }

  private showCard(): void {
    const geometry = this.draft ?? this.current?.geometry ?? null;
    this.card.hidden = geometry === null;
    if (geometry === null) return;
    const row = this.current;
    // Text typed in the form is kept when the shape changes.
    const key = row?.id ?? "new";
    const typed = (id: string): string | undefined =>
      this.shownFor === key ? this.card.querySelector<HTMLInputElement>(`#${id}`)?.value : undefined;
    const isOpen = this.shownFor === key && this.card.querySelector("details")?.open === true;
    const nameField = h("input", {
      class: "input",
      id: "region-name",
      maxlength: 100,
      value: typed("region-name") ?? row?.name ?? "",
      placeholder: t("harbour entrance"),
      disabled: row?.editable === false,
    });
    const tagField = h("input", {
      class: "input",
      id: "region-tags",
      value: typed("region-tags") ?? row?.tags.join(", ") ?? "",
      placeholder: t("port, protected"),
      disabled: row?.editable === false,
    });
    this.shownFor = key;
    this.fields = { name: nameField, tags: tagField };
    for (const field of [nameField, tagField]) field.addEventListener("input", () => this.showDiscarder());
    this.showDiscarder();
    this.description.textContent = this.describe(geometry);
    this.table.show(geometry);
    const usedBy = row?.used_by ?? [];
    replace(
      this.card,
      h("div", { class: "row spread" }, h("h2", {}, row === null ? t("New region") : row.name), this.description),
      h("div", { class: "field", "data-pointer": "/name" }, h("label", { for: "region-name" }, t("Name")), nameField),
      h("div", { class: "field", "data-pointer": "/tags" }, h("label", { for: "region-tags" }, t("Tags")), tagField),
      h(
        "details",
        { class: "coordinates", open: isOpen, "data-pointer": "/geometry" },
        h("summary", {}, t("Corners as numbers")),
        this.table.element,
      ),
      usedBy.length === 0
        ? null
        : h(
            "div",
            { class: "small" },
            h("div", { class: "section-title" }, t("Used by")),
            h("ul", { class: "stack-tight" }, ...usedBy.map((one) => h("li", {}, h("a", { href: `/queries/${one.id}` }, one.name)))),
            h("p", { class: "hint" }, t("If you change the shape, these queries get new versions.")),
          ),
      h(
        "div",
        { class: "row row-wrap" },
        row?.editable === false
          ? null
          : button(t("Save"), {
              icon: "save",
              kind: "button-primary",
              onClick: () => this.save(nameField.value, tagField.value, this.draft ?? geometry),
            }),
        this.discarder,
        row === null ? null : linkButton(t("Who is inside"), `/regions/${row.id}`, "activity"),
        row === null ? null : linkButton(t("Query on it"), address("/queries/new", { feed: this.feed.name, region: row.name }), "plus"),
        row === null || !row.editable
          ? null
          : button(t("Delete"), { icon: "trash-2", kind: "button-quiet button-danger", onClick: () => this.remove(row) }),
      ),
    );
  }

  private describe(geometry: Geometry): string {
    return describe(geometry, this.feed.crs === "geographic");
  }

  private showDiscarder(): void {
    this.discarder.hidden = !this.isChanged();
  }

  private async save(title: string, tags: string, geometry: Geometry): Promise<void> {
    const body = {
      feed: this.feed.name,
      name: title.trim(),
      geometry,
      tags: tags
        .split(",")
        .map((tag) => tag.trim())
        .filter((tag) => tag !== ""),
    };
    const { current, draft } = this;
    try {
      const saved = current === null ? await post("regions/", body, regionParser) : await this.changed(current, body);
      if (saved === null) return;
      // Not if something else was started, or the shape changed again meanwhile.
      if (this.current === current && this.draft === draft) {
        this.current = saved;
        this.draft = null;
        this.shownFor = "";
        this.showCard();
      }
      toast(t("“{name}” is saved.", { name: saved.name }), "good");
      await this.load();
      if (this.isAt(saved)) this.select(this.rows.find((row) => row.id === saved.id) ?? null);
    } catch (error) {
      if (error instanceof ApiError && error.status === 400) {
        this.card.querySelector("details")?.setAttribute("open", "");
        const rest = showFaults(this.card, distinct(this.explained(error.faults)));
        if (rest[0] !== undefined) toast(rest[0].message, "critical");
      } else {
        fail(error);
      }
    }
  }

  /** The page's own words for a shape that it knows cannot be saved: they have the remedy. */
  private explained(faults: readonly Fault[]): readonly Fault[] {
    const problem = this.editor.problem();
    const isOfShape = ({ pointer }: Fault): boolean => pointer === "/geometry" || pointer.startsWith("/geometry/");
    return problem === null ? faults : faults.map((fault) => (isOfShape(fault) ? { ...fault, message: problem } : fault));
  }

  /** The region with these changes; null when another user's change is kept. */
  private async changed(row: RegionRow, body: object): Promise<RegionRow | null> {
    const updated_at = await replaceable(
      "regions",
      row,
      t("This region has been changed meanwhile"),
      t("Saving replaces the other change by yours. To see it first, open this page in another tab."),
    );
    return updated_at === null ? null : regionParser(await call(`regions/${row.id}/`, { method: "PATCH", body: { ...body, updated_at } }));
  }

  private async remove(row: RegionRow): Promise<void> {
    const effect = t("“{name}” is removed from the library.", { name: row.name });
    if (!(await confirmDanger(t("Delete this region?"), effect, t("Delete region")))) return;
    try {
      await call(`regions/${row.id}/`, { method: "DELETE" });
      this.select(null);
      await this.load();
    } catch (error) {
      fail(error);
    }
  }

  /** One after the other: each may ask something. */
  private async importFiles(files: readonly File[]): Promise<void> {
    for (const file of files) {
      const imported = await importFile(file, this.feed, (id) => this.rows.find((row) => row.id === id)?.used_by ?? []);
      if (imported === null) continue;
      await this.load();
      // It may be one of those that were replaced.
      if (this.current !== null && !this.isChanged()) this.select(this.rows.find((row) => row.id === this.current?.id) ?? null);
      this.fitTo(imported);
    }
  }
}

if (start === undefined)
  pageFrame(shell.root, t("Regions")).append(
    empty(
      "radio",
      t("No feed yet"),
      t("Regions belong to a feed. Make one first."),
      linkButton(t("Feeds and jobs"), "/feeds/", "activity", "button-primary"),
    ),
  );
else new RegionsPage(start);
