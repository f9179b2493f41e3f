import { ApiError, call, get, getAll, post, query as address, faultList, reason, type Fault } from "../lib/api";
import { button, h, icon, linkButton, replace } from "../lib/dom";
import { isObject, list, nullable, number, otherwise, record, string } from "../lib/parse";
import { asGeometry, type Geometry } from "../lib/regions";
import { emptyEntries, fromSpecification, hasForm, kindsOf, parseText, toSpecification, type QueryEntries } from "../data/query_form_data";
import { channel as channelParser, moment, queryRow, region as regionParser, SEVERITIES, type Channel, type Detection, type Feed, type QueryRow, type RegionRow, type Severity } from "../data/shapes";
import { queryColour } from "../lib/colours";
import { formatAgo, formatNumber } from "../lib/time";
import { kindVerb, SEVERITY_NAMES } from "../lib/words";
import { confirmDanger, openDialog } from "../views/dialog_view";
import { showFaults } from "../views/faults_view";
import { boundsOf } from "../views/map_view";
import { PreviewView } from "../views/query_form/preview_view";
import { QueryFormView, section } from "../views/query_form/form_view";
import { RegionEditorView } from "../views/region_editor_view";
import { fail, openShell, toast } from "../views/shell_view";

const shell = openShell();
const stored = shell.data["query"] === null || shell.data["query"] === undefined ? null : queryRow(shell.data["query"]);
const families = isObject(shell.data["families"]) ? Object.keys(shell.data["families"]) : ["border", "transition"];
const parameters = new URLSearchParams(location.search);
const checked = record({ faults: faultList, sentence: nullable(string), kinds: otherwise(list(string), []) });

interface Settings {
  name: string;
  description: string;
  severity: Severity;
  alertKinds: Set<string>;
  enabled: boolean;
}

class QueryPage {
  private readonly entries: QueryEntries;
  private readonly settings: Settings;
  private readonly form: QueryFormView;
  private readonly editor: RegionEditorView;
  private readonly preview: PreviewView;
  private readonly sentence = h("div", { class: "sentence", role: "status", "aria-live": "polite" });
  private readonly alertKinds = h("div", { class: "stack" });
  private readonly left = h("div", { class: "query-left" });
  private readonly save = button(stored === null ? "Register query" : "Save new version", { icon: "save", kind: "button-primary", id: "save-query", onClick: () => void this.store() });
  private kinds: string[];
  private faults: Fault[] = [];
  /** Faults are shown at their fields once the reader has tried to go on; before that only as what is still missing. */
  private isTried = stored !== null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private request: AbortController | null = null;

  constructor(
    private readonly feed: Feed,
    private readonly regions: RegionRow[],
    private readonly channels: Channel[],
  ) {
    this.entries = stored === null ? this.fresh() : fromSpecification(stored.specification, feed.time);
    this.settings = { name: stored?.name ?? "", description: stored?.description ?? "", severity: stored?.severity ?? "low", alertKinds: new Set(stored?.alert_kinds), enabled: stored?.enabled ?? true };
    this.kinds = stored?.kinds ?? kindsOf(this.entries);
    this.form = new QueryFormView(this.entries, feed, regions, families, stored === null, { onChange: () => this.changed(), onImport: (file) => void this.importRegion(file) });
    const right = h("div", { class: "query-right" });
    const mapBox = h("div", { class: "panel query-map" });
    this.preview = new PreviewView(feed, shell.me.time_zone, { specification: () => this.specification(), onShow: (rows) => this.showAnswers(rows), onFaults: (error) => this.refused(error) });
    right.append(mapBox, this.preview.element);
    replace(this.left, this.general(), this.form.element, this.alerts(), this.sentenceCard());
    replace(shell.root, this.head(), h("div", { class: "query-page" }, this.left, right));
    this.editor = new RegionEditorView(mapBox, feed, (geometry) => this.drawn(geometry));
    this.showContext();
    this.showRegion(true);
    this.showAlertKinds();
    void this.check();
  }

  private fresh(): QueryEntries {
    const family = parameters.get("family");
    const entries = emptyEntries(family !== null && families.includes(family) ? family : (families[0] ?? "border"), this.feed.time);
    const region = parameters.get("region");
    if (this.regions.some((row) => row.name === region)) entries.reference = region;
    return entries;
  }

  private head(): HTMLElement {
    const title = stored === null ? "New query" : stored.name;
    const actions: HTMLElement[] = [];
    if (stored !== null) {
      actions.push(button("Versions", { icon: "history", kind: "button-quiet", onClick: () => void showVersions(stored) }));
      if (stored.editable) actions.push(button("Remove", { icon: "trash-2", kind: "button-quiet button-danger", onClick: () => void remove(stored) }));
    }
    if (stored?.editable !== false) actions.push(this.save);
    return h("header", { class: "bar" }, h("a", { class: "breadcrumb", href: "/queries/" }, icon("arrow-left"), "Queries"), h("h1", { class: "truncate" }, title), stored ? h("span", { class: "badge" }, `version ${stored.version}`) : null, h("div", { class: "bar-actions" }, ...actions));
  }

  private general(): HTMLElement {
    const name = h("input", { class: "input", id: "query-name", maxlength: 100, value: this.settings.name, placeholder: "Parked too long in the harbour", autocomplete: "off" });
    name.addEventListener("input", () => (this.settings.name = name.value));
    const feed = h("select", { class: "select", id: "query-feed", disabled: stored !== null }, ...shell.feeds.map((one) => h("option", { value: one.name, selected: one.name === this.feed.name }, one.title === "" ? one.name : one.title)));
    feed.addEventListener("change", () => location.assign(address("/queries/new", { feed: feed.value, family: this.entries.family })));
    return h(
      "section",
      { class: "form-section form-general" },
      h("div", { class: "field grow", "data-pointer": "/name" }, h("label", { for: "query-name" }, "Name"), name),
      h("div", { class: "field", "data-pointer": "/feed" }, h("label", { for: "query-feed" }, "Feed"), feed),
    );
  }

  private alerts(): HTMLElement {
    const severities = SEVERITIES.map((one) => {
      const element = h("button", { type: "button", "aria-pressed": String(one === this.settings.severity) }, h("span", { class: `dot dot-${one}` }), SEVERITY_NAMES[one]);
      element.addEventListener("click", () => {
        this.settings.severity = one;
        for (const other of severities) other.setAttribute("aria-pressed", String(other === element));
        this.showChannels();
      });
      return element;
    });
    const enabled = h("input", { type: "checkbox", checked: this.settings.enabled });
    enabled.addEventListener("change", () => (this.settings.enabled = enabled.checked));
    return section(
      "Whom does it alert?",
      h("div", { "data-pointer": "/alert_kinds" }, this.alertKinds),
      h("div", { class: "field" }, h("span", { class: "label" }, "Severity of its alerts"), h("div", { class: "segmented", role: "group", "aria-label": "Severity" }, ...severities)),
      this.channelList,
      h("label", { class: "check" }, h("span", { class: "switch" }, enabled, h("span", {})), h("span", {}, h("strong", {}, "Switched on"), h("span", { class: "hint" }, " A query that is off is kept but gives no answers."))),
    );
  }

  private readonly channelList = h("div", { class: "small muted" });

  private showChannels(): void {
    const rank = SEVERITIES.indexOf(this.settings.severity);
    const reached = this.channels.filter((one) => one.enabled && SEVERITIES.indexOf(one.min_severity) <= rank && (one.queries.length === 0 || (stored !== null && one.queries.includes(stored.id))));
    const text = this.settings.alertKinds.size === 0 ? "" : reached.length === 0 ? "Alerts appear here in Vedette; no channel carries them further. " : `Alerts also go to ${reached.map((one) => one.name).join(", ")}. `;
    replace(this.channelList, h("p", { class: "row" }, icon("webhook"), h("span", {}, text === "" ? "It opens no alerts: answers only appear on the map and the timeline. " : text, h("a", { href: "/account/#channels" }, "Channels"))));
  }

  private showAlertKinds(): void {
    for (const kind of this.settings.alertKinds) if (!this.kinds.includes(kind)) this.settings.alertKinds.delete(kind);
    const boxes = this.kinds.map((kind) => {
      const box = h("input", { type: "checkbox", id: `alert-${kind}`, checked: this.settings.alertKinds.has(kind) });
      box.addEventListener("change", () => {
        if (box.checked) this.settings.alertKinds.add(kind);
        else this.settings.alertKinds.delete(kind);
        this.showChannels();
      });
      return h("label", { class: "check" }, box, h("span", {}, `Open an alert when something ${kindVerb(kind)}`));
    });
    replace(this.alertKinds, ...(boxes.length > 0 ? boxes : [h("p", { class: "small muted" }, "Choose what counts first.")]));
    this.showChannels();
  }

  private sentenceCard(): HTMLElement {
    return h("section", { class: "form-section" }, h("h2", {}, "In words"), this.sentence);
  }

  // ---- What is written

  private specification(): Record<string, unknown> {
    return toSpecification(this.entries, this.feed);
  }

  private changed(): void {
    this.showRegion(false);
    this.preview.changed();
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.check(), 350);
  }

  private async check(): Promise<void> {
    if (!hasForm(this.entries.family) && parseText(this.entries.text) === null) {
      this.tell([{ pointer: "/", message: "This is no JSON object yet." }], null);
      return;
    }
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    try {
      const answer = await post("queries/check", { feed: this.feed.name, specification: this.specification() }, checked, request.signal);
      if (answer.faults.length === 0 || answer.kinds.length > 0) this.kinds = answer.kinds.length > 0 ? answer.kinds : kindsOf(this.entries);
      this.tell(answer.faults, answer.sentence);
      this.showAlertKinds();
    } catch (error) {
      if (request.signal.aborted) return;
      replace(this.sentence, h("p", { class: "muted" }, reason(error)));
    }
  }

  private tell(faults: Fault[], sentence: string | null): void {
    this.faults = faults;
    const unclaimed = showFaults(this.left, this.isTried ? faults : []);
    if (sentence !== null && faults.length === 0) {
      replace(this.sentence, h("p", { class: "sentence-text" }, sentence));
    } else {
      const shown = this.isTried ? unclaimed : faults;
      replace(this.sentence, h("p", { class: "muted" }, this.isTried && unclaimed.length === 0 ? "Not yet: see the marked fields." : "Still to do:"), h("ul", { class: "todo" }, ...shown.map((fault) => h("li", {}, fault.message))));
    }
  }

  private refused(error: unknown): void {
    this.isTried = true;
    if (error instanceof ApiError && error.faults.length > 0 && error.status === 400) {
      const faults = error.faults.map((fault) => ({ ...fault, pointer: fault.pointer.replace(/^\/specification/, "") }));
      this.tell(faults, null);
      this.left.querySelector(".field-error")?.scrollIntoView({ block: "center", behavior: "smooth" });
    } else {
      fail(error);
    }
  }

  private async store(): Promise<void> {
    this.isTried = true;
    if (this.settings.name.trim() === "") {
      this.tell([{ pointer: "/name", message: "Give it a name: it stands on the timeline and in alerts." }, ...this.faults.filter((fault) => fault.pointer !== "/name")], null);
      document.getElementById("query-name")?.focus();
      return;
    }
    this.save.disabled = true;
    const body = { feed: this.feed.name, name: this.settings.name.trim(), specification: this.specification(), severity: this.settings.severity, alert_kinds: [...this.settings.alertKinds], enabled: this.settings.enabled };
    try {
      if (stored === null) {
        const made = await post("queries/", body, queryRow);
        location.assign(address("/", { feed: made.feed }));
      } else {
        const changed = queryRow(await call(`queries/${stored.id}/`, { method: "PATCH", body }));
        toast(changed.version > stored.version ? `Saved as version ${changed.version}. It acts within seconds.` : "Saved.", "good");
        setTimeout(() => location.reload(), 900);
      }
    } catch (error) {
      this.refused(error);
    } finally {
      this.save.disabled = false;
    }
  }

  // ---- The map

  private drawn(geometry: Geometry | null): void {
    this.entries.place = "region";
    this.form.regionDrawn(geometry);
    this.changed();
  }

  private shownRegion = "";

  private showRegion(fit: boolean): void {
    const { reference, geometry, place } = this.entries;
    const row = reference === null ? undefined : this.regions.find((one) => one.name === reference);
    const shown = place === "ranges" || !hasForm(this.entries.family) ? null : (row?.geometry ?? geometry);
    const key = JSON.stringify([shown, reference]);
    if (key === this.shownRegion) return;
    this.shownRegion = key;
    this.editor.show(shown, row === undefined, fit || row !== undefined);
  }

  private showContext(): void {
    this.editor.setContext(this.regions.map((row) => ({ id: row.id, name: row.name, geometry: row.geometry, colour: null })));
  }

  private showAnswers(rows: Detection[]): void {
    this.editor.feedMap.tracks.set([], rows.flatMap((row) => row.evidence.slice(-1)));
    const colour = queryColour("preview");
    this.editor.element.style.setProperty("--swatch", colour);
  }

  private async importRegion(file: File): Promise<void> {
    const form = new FormData();
    form.append("file", file);
    form.append("feed", this.feed.name);
    form.append("dry_run", "true");
    try {
      const answer = await post("regions/import", form, record({ created: list(record({ name: otherwise(string, "region"), geometry: (value: unknown) => asGeometry(value) })), refused: otherwise(list(record({ row: otherwise(number, 0), faults: faultList })), []) }));
      const found = answer.created.filter((row) => row.geometry !== null);
      if (found.length === 0) {
        toast(answer.refused[0]?.faults[0]?.message ?? "There is no region in this file.", "critical");
      } else if (found.length === 1) {
        this.takeImported(found[0]!.geometry);
      } else {
        const dialog = openDialog("Which region?", ...found.slice(0, 200).map((row) => button(row.name, {
              onClick: () => {
                dialog.close();
                this.takeImported(row.geometry);
              },
            })));
      }
    } catch (error) {
      fail(error);
    }
  }

  private takeImported(geometry: Geometry | null): void {
    this.form.regionDrawn(geometry);
    this.changed();
    const box = geometry === null ? null : boundsOf([geometry], this.feed.crs === "geographic");
    if (box !== null) this.editor.feedMap.fit(box);
  }
}

const version = record({ version: number, sentence: otherwise(string, ""), created_at: moment, created_by: nullable(string), current: otherwise((value: unknown) => value === true, false), specification: (value: unknown) => value });

async function showVersions(row: QueryRow): Promise<void> {
  try {
    const versions = await get(`queries/${row.id}/versions`, list(version));
    const items = versions.map((one) => h("div", { class: "version" }, h("div", { class: "row spread" }, h("strong", {}, `Version ${formatNumber(one.version)}`), one.current ? h("span", { class: "badge badge-good" }, "current") : null), h("p", { class: "small" }, one.sentence), h("p", { class: "small faint" }, `${formatAgo(one.created_at, Date.now())}${one.created_by ? ` by ${one.created_by}` : ""}`), h("details", {}, h("summary", { class: "small" }, "Specification"), h("pre", { class: "mono document" }, JSON.stringify(one.specification, null, 2)))));
    openDialog(`Versions of ${row.name}`, ...items).foot.remove();
  } catch (error) {
    fail(error);
  }
}

async function remove(row: QueryRow): Promise<void> {
  if (!(await confirmDanger("Remove this query?", `“${row.name}” stops giving answers. Those it has given are kept.`, "Remove query"))) return;
  try {
    await call(`queries/${row.id}/`, { method: "DELETE" });
    location.assign("/queries/");
  } catch (error) {
    fail(error);
  }
}

async function open(): Promise<void> {
  const name = stored?.feed ?? parameters.get("feed");
  const feed = shell.feeds.find((one) => one.name === name) ?? shell.feeds[0];
  if (feed === undefined) {
    replace(shell.root, h("div", { class: "page" }, linkButton("There is no feed yet: make one first", "/feeds/", "activity")));
    return;
  }
  const [regions, channels] = await Promise.all([getAll(address("regions/", { feed: feed.name, page_size: 1000 }), regionParser, 20_000), getAll("channels/", channelParser).catch((): Channel[] => [])]);
  new QueryPage(feed, regions, channels);
}

open().catch(fail);
