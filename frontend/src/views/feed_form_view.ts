/** The dialog that creates a feed, and the one that changes its settings while rows arrive. */

import { ApiError, call, get } from "../lib/api";
import { holdings } from "../lib/answers";
import { button, h } from "../lib/dom";
import { formatNumber, formatSpan, type TimeUnit } from "../lib/time";
import type { FeedStatus } from "../lib/shapes";
import { columnsOf } from "../data/feed_form_data";
import { confirmDanger, keepEntries, openDialog, type Dialog } from "./dialog_view";
import { showFaults } from "./faults_view";
import { goToFault } from "./form_parts";
import { DurationField } from "./query_form/duration_field";
import { fail, toast } from "./shell_view";
import { t } from "../lib/texts";
import { formField } from "./form_field";

type Team = { id: string; name: string };
type Body = Record<string, unknown>;

/** Creates a feed of the first of `teams`, or of another; `done` is called afterwards. */
export function openNewFeed(teams: readonly Team[], done: () => void): void {
  const name = input("feed-name", { maxlength: 63, placeholder: t("harbour"), pattern: "[a-z][a-z0-9_\\-]*" });
  const title = input("feed-title", { maxlength: 100, placeholder: t("The harbour") });
  const crs = select("feed-crs", [
    ["geographic", t("Longitude and latitude")],
    ["planar", t("A plane, in metres")],
  ]);
  const time = select("feed-time", [
    ["ms", t("Milliseconds since 1970")],
    ["ticks", t("Ticks, such as frames")],
  ]);
  const wallClock = h("input", { type: "checkbox", id: "feed-wall-clock", class: "checkbox" });
  const columns = h("textarea", { class: "textarea mono", id: "feed-columns", rows: 3, placeholder: "speed: float\nkind: string" });
  const team = select("feed-team", [...teams.map((one) => [one.id, one.name] as const), ["", t("Nobody else")]]);
  const spans = h("div", { class: "stack" });
  let lateness: DurationField;
  let guard: Guard;
  const showSpans = (): void => {
    const unit = time.value as TimeUnit;
    lateness = latenessField(unit, undefined);
    guard = new Guard(unit, undefined);
    spans.replaceChildren(lateness.element, guard.element);
  };
  time.addEventListener("change", showSpans);
  showSpans();
  const dialog = openDialog(
    t("New feed"),
    formField(t("Name"), "/name", name, t("In addresses: small letters, digits, - and _.")),
    formField(t("Title"), "/title", title, t("What pages call it; the name if empty.")),
    formField(t("Places"), "/crs", crs),
    formField(t("Times"), "/time", time),
    h(
      "div",
      { class: "field", "data-pointer": "/wall_clock" },
      h("label", { class: "row", for: "feed-wall-clock" }, wallClock, t("Times are wall-clock times")),
      h("span", { class: "hint" }, t("Then time also moves on when no rows come.")),
    ),
    spans,
    formField(t("Other columns"), "/columns", columns, t("One per line, with its type: string, int, float or bool.")),
    formField(t("Team"), "/team", team),
  );
  finish(
    dialog,
    t("Make feed"),
    done,
    () =>
      call("feeds/", {
        method: "POST",
        body: {
          name: name.value.trim(),
          ...(title.value.trim() === "" ? {} : { title: title.value.trim() }),
          crs: crs.value,
          time: time.value,
          wall_clock: wallClock.checked,
          columns: columnsOf(columns.value),
          team: team.value === "" ? null : Number(team.value),
          ...(lateness.value() === null ? {} : { lateness: lateness.value() }),
          ...guard.body(),
        },
      }),
    t("The feed is made."),
  );
}

/**
 * The settings of a feed that can change at any time. `teams`: those with
 * which its owner may share it.
 */
export function openFeedSettings(feed: FeedStatus, teams: readonly Team[], done: () => void): void {
  const title = input("feed-title", { maxlength: 100, value: feed.title });
  const retention = input("feed-retention", { inputmode: "numeric", value: String(feed.retention_hours) });
  const guard = new Guard(feed.time, feed.ahead);
  const lateness = feed.counters?.received === 0 ? latenessField(feed.time, feed.lateness) : null;
  const known = feed.team === null || teams.some((one) => one.id === feed.team?.id) ? teams : [feed.team, ...teams];
  const team = select("feed-team", [...known.map((one) => [one.id, one.name] as const), ["", t("Nobody else")]], feed.team?.id ?? "");
  const isPublic = h("input", { type: "checkbox", id: "feed-public", class: "checkbox", checked: feed.public });
  const columns = h("textarea", { class: "textarea mono", id: "feed-columns", rows: 2, placeholder: "speed: float" });
  const columnList = Object.entries(feed.columns).map(([name, kind]) => `${name} (${kind})`);
  const present = columnList.length === 0 ? t("There is none yet") : t("There are {columnList}", { columnList: columnList.join(", ") });
  const plan = h("input", { type: "file", id: "feed-plan", class: "input", accept: "image/png,image/jpeg,image/webp" });
  const dialog = openDialog(
    t("Settings of {value}", { value: feed.title === "" ? feed.name : feed.title }),
    formField(t("Title"), "/title", title),
    lateness?.element ?? latenessStays(feed),
    guard.element,
    formField(
      t("Columns to add"),
      "/columns",
      columns,
      t("One per line, with its type: string, int, float or bool. {present}; these stay. Earlier rows have no values for new ones.", {
        present,
      }),
    ),
    formField(t("Hours that rows are kept"), "/retention_hours", retention, t("Back from the newest row.")),
    formField(t("Team"), "/team", team, t("Its members see the feed, its operators change it.")),
    h(
      "div",
      { class: "field", "data-pointer": "/public" },
      h("label", { class: "row", for: "feed-public" }, isPublic, t("All logged-in users may read it")),
    ),
    feed.crs === "planar" ? formField(t("Plan below the map"), "/plan_image", plan, t("PNG, JPEG or WebP. Empty: no change.")) : null,
  );
  const hours = (): unknown => (/^\d+$/.test(retention.value.trim()) ? Number(retention.value) : retention.value);
  const added = (): Body => (columns.value.trim() === "" ? {} : { columns: { ...feed.columns, ...columnsOf(columns.value) } });
  const save = async (): Promise<void> => {
    const sharing = { team: team.value === "" ? null : Number(team.value), public: isPublic.checked };
    await call(`feeds/${feed.name}/`, {
      method: "PATCH",
      body: {
        ...added(),
        ...(lateness === null ? {} : { lateness: lateness.value() ?? 0 }),
        title: title.value.trim(),
        retention_hours: hours(),
        ...sharing,
        ...guard.body(),
      },
    });
    const image = plan.files?.[0];
    if (image !== undefined) await call(`feeds/${feed.name}/plan`, { method: "PUT", body: image });
  };
  dialog.foot.append(
    button(t("Delete feed…"), {
      icon: "trash-2",
      kind: "button-quiet button-danger",
      onClick: () => {
        dialog.close();
        void removeFeed(feed);
      },
    }),
  );
  finish(dialog, t("Save"), done, save, t("Saved."));
}

/** Why the lateness cannot be edited any more (decision 31). */
function latenessStays({ lateness, time }: FeedStatus): HTMLElement {
  return h(
    "div",
    { class: "field" },
    h(
      "span",
      { class: "label" },
      t("How late a row may come: {value}", { value: lateness === 0 ? t("not at all") : formatSpan(lateness, time) }),
    ),
    h(
      "span",
      { class: "hint" },
      t("This cannot change, because rows have arrived and it determined which of them were late. For another lateness create a new feed."),
    ),
  );
}

const NAMED = 5;

/** The queries that have to be removed first: a few by name. */
function inTheWay(names: readonly string[]): string {
  const shown = names.slice(0, NAMED).join(", ");
  return names.length > NAMED
    ? t("Remove its queries first: {names} and others.", { names: shown })
    : t("Remove its queries first: {names}.", { names: shown });
}

/** Shows what would be removed with the feed, and removes it after confirmation. */
async function removeFeed(feed: FeedStatus): Promise<void> {
  try {
    const { rows, regions, queries, in_the_way: names, answers, connectors } = await get(`feeds/${feed.name}/holdings`, holdings);
    if (names.length > 0) {
      toast(inTheWay(names), "critical");
      return;
    }
    const counts = [
      [rows, t("rows")],
      [answers, t("answers")],
      [regions, t("regions")],
      [queries, t("queries of others")],
      [connectors, t("connectors")],
    ] as const;
    const words = counts.filter(([count]) => count > 0).map(([count, what]) => `${formatNumber(count)} ${what}`);
    const gone =
      words.length === 0 ? t("Nothing is stored.") : t("This also removes {words}. It cannot be undone.", { words: words.join(", ") });
    if (!(await confirmDanger(t("Delete the feed {name}?", { name: feed.name }), gone, t("Delete feed")))) return;
    await call(`feeds/${feed.name}/`, { method: "DELETE" });
    location.reload();
  } catch (error) {
    fail(error);
  }
}

/**
 * The limit for rows ahead of the clock: the default of the clock (new feeds
 * only), a number, or unlimited.
 */
class Guard {
  readonly element: HTMLElement;
  private readonly choice: HTMLSelectElement;
  private readonly bound: DurationField;

  constructor(time: TimeUnit, ahead: number | null | undefined) {
    this.choice = select(
      "feed-ahead-kind",
      [
        ...(ahead === undefined ? [["default", t("The default for the clock")] as const] : []),
        ["bound", t("At most")],
        ["none", t("Without a bound")],
      ],
      ahead === undefined ? "default" : ahead === null ? "none" : "bound",
    );
    this.bound = new DurationField({ id: "feed-ahead", label: t("At most"), time, value: ahead, onChange: () => undefined });
    const showBound = (): void => {
      this.bound.element.hidden = this.choice.value !== "bound";
    };
    this.choice.addEventListener("change", showBound);
    showBound();
    this.element = h(
      "div",
      { class: "field", "data-pointer": "/ahead" },
      h("label", { for: "feed-ahead-kind" }, t("How far ahead of the clock a row may be")),
      this.choice,
      this.bound.element,
      h("span", { class: "hint" }, t("A row further ahead becomes a dead letter: one wrong clock would make the rows of all others late.")),
    );
  }

  body(): Body {
    if (this.choice.value === "default") return {};
    return { ahead: this.choice.value === "none" ? null : (this.bound.value() ?? "") };
  }
}

function latenessField(time: TimeUnit, value: unknown): DurationField {
  return new DurationField({
    id: "feed-lateness",
    label: t("How late a row may come"),
    time,
    value,
    pointer: "/lateness",
    hint: t("Answers wait this long for delayed rows."),
    onChange: () => undefined,
  });
}

function input(id: string, more: Record<string, string | number>): HTMLInputElement {
  return h("input", { class: "input", id, autocomplete: "off", ...more });
}

function select(id: string, options: readonly (readonly [string, string])[], chosen?: string): HTMLSelectElement {
  return h("select", { class: "select", id }, ...options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
}

function finish(dialog: Dialog, action: string, done: () => void, send: () => Promise<unknown>, message: string): void {
  keepEntries(dialog);
  const refused = (error: unknown): void => {
    if (!(error instanceof ApiError) || error.status !== 400) {
      fail(error);
      return;
    }
    const rest = showFaults(dialog.body, error.faults);
    if (rest.length > 0) fail(new ApiError(400, rest));
    goToFault(dialog.body);
  };
  dialog.foot.append(
    button(t("Cancel"), { onClick: dialog.close }),
    button(action, {
      kind: "button-primary",
      onClick: () =>
        send().then(() => {
          dialog.close();
          toast(message, "good");
          done();
        }, refused),
    }),
  );
}
