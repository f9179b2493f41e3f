/** The desk's tabs and filters, and saved views. */

import { t } from "../lib/texts";
import { addressOf, BETWEEN, filterCount, GROUPS, MUTED, ORDERS, SINCE, TABS, viewFrom, type DeskView } from "../data/desk_view";
import { regionUse, SEVERITIES, type Feed, type Me } from "../lib/shapes";
import { call, getAll, post } from "../lib/api";
import { named, savedView, type Named, type SavedView } from "../lib/answers";
import { button, h, icon, replace } from "../lib/dom";
import { anything } from "../lib/parse";
import { teamMates } from "../lib/team_mates";
import { fromWall, toWall, type Zone } from "../lib/time";
import { SEVERITY_NAMES } from "../lib/words";
import { openDialog } from "./dialog_view";
import { refusedIn } from "./form_parts";
import { attachMenu, type MenuItem } from "./menu_view";
import { fail, toast } from "./shell_view";

const TYPING_MS = 250;

export class DeskFiltersView {
  private readonly tabs = TABS.map((one) =>
    h("button", { type: "button", onClick: () => this.change({ ...this.view, tab: one }) }, one.text),
  );
  private readonly search = h("input", {
    class: "input toolbar-search",
    type: "search",
    placeholder: t("Search query, entity or kind"),
    "aria-label": t("Search"),
    maxlength: 200,
  });
  private readonly severity = select(t("Severity"), [
    ["", t("Any severity")],
    ...SEVERITIES.map((one): [string, string] => [one, SEVERITY_NAMES[one]]),
  ]);
  private readonly feed: HTMLSelectElement;
  private readonly query = select(t("Query"), [["", t("Any query")]]);
  private readonly region = select(t("Region"), [["", t("Any region")]]);
  private readonly entity = h("input", { class: "input", type: "text", placeholder: t("Any entity"), "aria-label": t("Entity") });
  private readonly assignee = select(t("Assigned to"), [
    ["", t("Assigned to anyone")],
    ["me", t("Assigned to me")],
    ["nobody", t("Not assigned")],
  ]);
  private readonly since = select(t("Opened"), SINCE);
  private readonly from = h("input", { class: "input", type: "datetime-local", "aria-label": t("Opened from") });
  private readonly until = h("input", { class: "input", type: "datetime-local", "aria-label": t("Opened before") });
  private readonly muted = select(t("Muted"), MUTED);
  private readonly order = select(t("Order"), ORDERS);
  private readonly group = select(t("Group"), GROUPS);
  private readonly toggle = button(t("Filters"), {
    icon: "sliders-horizontal",
    "aria-expanded": "false",
    onClick: () => this.fold(this.more.hidden),
  });
  private readonly kept = button(t("Views"), { icon: "bookmark" });
  private readonly more: HTMLElement;
  readonly element: HTMLElement;
  /** The queries that use the region of the view. */
  queriesOfRegion: ReadonlySet<string> = new Set();
  private regions: ReturnType<typeof regionUse>[] = [];
  private areNamesAsked = false;
  private views: SavedView[] = [];
  private typing: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private view: DeskView,
    feeds: readonly Feed[],
    private readonly me: Me,
    private readonly onChange: (view: DeskView) => void,
  ) {
    this.feed = select(t("Feed"), [
      ["", t("All feeds")],
      ...feeds.map((one): [string, string] => [one.name, one.title === "" ? one.name : one.title]),
    ]);
    this.more = h(
      "div",
      { class: "toolbar desk-more" },
      ...[this.severity, this.feed, this.query, this.region, this.entity, this.assignee, this.muted, this.since, this.from, this.until].map(
        (one) => h("div", { class: "toolbar-select" }, one),
      ),
    );
    this.element = h(
      "div",
      { class: "stack desk-filters" },
      h(
        "div",
        { class: "toolbar" },
        h("div", { class: "segmented desk-tabs", role: "group", "aria-label": t("State") }, ...this.tabs),
        this.search,
        this.toggle,
        h("div", { class: "toolbar-select" }, this.order),
        h("div", { class: "toolbar-select" }, this.group),
        this.kept,
      ),
      this.more,
    );
    const chosen = [this.severity, this.feed, this.query, this.region, this.assignee, this.muted, this.since, this.order, this.group];
    for (const one of [...chosen, this.from, this.until]) one.addEventListener("change", () => this.read());
    for (const one of [this.search, this.entity]) one.addEventListener("input", () => this.readSoon());
    attachMenu(this.kept, () => this.viewItems());
    this.show(view);
    this.fold(filterCount(view) > (view.search === "" ? 0 : 1));
  }

  focusSearch(): void {
    this.search.focus();
  }

  /** Updates the controls from the view. */
  show(view: DeskView): void {
    this.view = view;
    TABS.forEach((one, i) => this.tabs[i]!.setAttribute("aria-pressed", String(one === view.tab)));
    for (const [control, value] of [
      [this.severity, view.severity],
      [this.feed, view.feed],
      [this.query, view.query],
      [this.region, view.region],
      [this.assignee, view.assignee],
      [this.since, view.since],
      [this.muted, view.muted],
      [this.group, view.group],
      [this.order, view.order],
    ] as const)
      pick(control, value);
    for (const [control, at] of [[this.from, view.from] as const, [this.until, view.until] as const]) {
      control.parentElement!.hidden = view.since !== BETWEEN;
      if (document.activeElement !== control) control.value = at === "" ? "" : toWall(Date.parse(at), this.me.time_zone).slice(0, 16);
    }
    if (view.query !== "" || view.region !== "") this.needNames();
    if (document.activeElement !== this.search) this.search.value = view.search;
    if (document.activeElement !== this.entity) this.entity.value = view.entity;
    const count = filterCount(view) - (view.search === "" ? 0 : 1);
    replace(this.toggle, icon("sliders-horizontal"), count === 0 ? t("Filters") : t("Filters ({count})", { count }));
    this.queriesOfRegion = new Set(this.regions.find((one) => one.id === view.region)?.used_by.map((one) => one.id) ?? []);
  }

  private fold(isOpen: boolean): void {
    this.more.hidden = !isOpen;
    if (isOpen) this.needNames();
    this.toggle.setAttribute("aria-expanded", String(isOpen));
  }

  private readSoon(): void {
    if (this.typing !== null) clearTimeout(this.typing);
    this.typing = setTimeout(() => this.read(), TYPING_MS);
  }

  private read(): void {
    const order = ORDERS.find(([name]) => name === this.order.value)?.[0] ?? "newest";
    const severity = SEVERITIES.find((one) => one === this.severity.value) ?? "";
    this.change({
      ...this.view,
      order,
      severity,
      search: this.search.value,
      feed: this.feed.value,
      query: this.query.value,
      region: this.region.value,
      entity: this.entity.value,
      assignee: this.assignee.value,
      since: this.since.value,
      from: this.since.value === BETWEEN ? momentOf(this.from.value, this.me.time_zone) : "",
      until: this.since.value === BETWEEN ? momentOf(this.until.value, this.me.time_zone) : "",
      muted: this.muted.value,
      group: this.group.value,
    });
  }

  private change(view: DeskView): void {
    this.show(view);
    this.onChange(view);
  }

  /**
   * Names of queries, regions and team mates: hundreds of documents, loaded when a list of them
   * becomes visible or the view names one.
   */
  private needNames(): void {
    if (this.areNamesAsked) return;
    this.areNamesAsked = true;
    void this.loadNames();
  }

  private async loadNames(): Promise<void> {
    try {
      const [queries, regions, people] = await Promise.all([
        getAll("queries/?page_size=500", named, 500),
        getAll("regions/?page_size=500", regionUse, 500),
        teamMates(),
      ]);
      this.regions = regions;
      fillWith(
        this.assignee,
        people.map(({ name }) => ({ id: name, name: t("Assigned to {assignee}", { assignee: name }) })),
      );
      fillWith(this.query, queries);
      fillWith(this.region, regions);
      this.show(this.view);
    } catch (error) {
      this.areNamesAsked = false;
      fail(error);
    }
  }

  async loadViews(): Promise<void> {
    try {
      this.views = await getAll("alert-views/", savedView, 200);
    } catch (error) {
      fail(error);
    }
  }

  private viewItems(): MenuItem[] {
    const now = addressOf(this.view);
    return [
      ...this.views.map((one) => ({
        content: [h("span", {}, one.name), h("span", { class: "hint small faint" }, one.team?.name ?? "")],
        isCurrent: one.parameters === now,
        onPick: () => this.change(viewFrom(one.parameters)),
      })),
      { content: [icon("plus"), h("span", {}, t("Save this view…"))], onPick: () => this.saveView() },
      ...this.views
        .filter((one) => one.editable && one.parameters === now)
        .map((one) => ({
          content: [icon("trash-2"), h("span", {}, t("Remove “{name}”", { name: one.name }))],
          onPick: () => void this.remove(one),
        })),
    ];
  }

  private saveView(): void {
    const name = h("input", { class: "input", type: "text", maxlength: 100, required: true, "aria-label": t("Name") });
    const team = select(t("Shared with"), [["", t("Nobody")], ...this.me.teams.map((one): [string, string] => [one.id, one.name])]);
    const dialog = openDialog(
      t("Save this view"),
      h("label", { class: "field", "data-pointer": "/name" }, h("span", { class: "label" }, t("Name")), name),
      h("label", { class: "field" }, h("span", { class: "label" }, t("Shared with")), team),
      h("p", { class: "small muted" }, t("The address of the page holds the same: you can also send that.")),
    );
    const save = (): Promise<void> =>
      post(
        "alert-views/",
        { name: name.value.trim(), parameters: addressOf(this.view), team: team.value === "" ? null : Number(team.value) },
        savedView,
      ).then((made) => {
        this.views.push(made);
        dialog.close();
        toast(t("The view “{name}” is saved.", { name: made.name }), "good");
      }, refusedIn(dialog));
    dialog.foot.append(button(t("Cancel"), { onClick: dialog.close }), button(t("Save"), { kind: "button-primary", onClick: save }));
    name.focus();
  }

  private async remove(view: SavedView): Promise<void> {
    try {
      anything(await call(`alert-views/${view.id}/`, { method: "DELETE" }));
      this.views = this.views.filter((one) => one !== view);
      toast(t("The view “{name}” is removed.", { name: view.name }), "good");
    } catch (error) {
      fail(error);
    }
  }
}

function select(name: string, options: readonly (readonly [string, string])[]): HTMLSelectElement {
  return h("select", { class: "select", "aria-label": name }, ...options.map(([value, text]) => h("option", { value }, text)));
}

function fillWith(control: HTMLSelectElement, things: readonly Named[]): void {
  const known = new Map([...control.options].map((option) => [option.value, option]));
  for (const { id, name } of things) {
    const option = known.get(id);
    if (option === undefined) control.append(h("option", { value: id }, name));
    else option.textContent = name;
  }
}

/** A local time of the reader's zone as ISO 8601; "" for an empty field. */
function momentOf(wall: string, zone: Zone): string {
  const at = fromWall(wall, zone);
  return at === null ? "" : new Date(at).toISOString();
}

/**
 * Adds an option for a value that the list does not contain (yet): the address may name it
 * before the list is loaded.
 */
function pick(control: HTMLSelectElement, value: string): void {
  if (![...control.options].some((option) => option.value === value)) control.append(h("option", { value }, value));
  control.value = value;
}
