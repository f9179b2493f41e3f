import { ApiError, call, getAll, post, query as address } from "../lib/api";
import { checked } from "../lib/answers";
import { button, exchange, h, icon, linkButton, replace } from "../lib/dom";
import { Latest } from "../lib/latest";
import { isObject } from "../lib/parse";
import { FEATURE } from "../data/bulk_data";
import { readDerive, withAnswers } from "../data/derive_data";
import { kept } from "../data/document_data";
import { draftOf, plainQuestion, questionsOf, type Question } from "../data/question_data";
import {
  channel as channelParser,
  queryRow,
  region as regionParser,
  type Channel,
  type Detection,
  type Feed,
  type RegionRow,
} from "../lib/shapes";
import { queryColour } from "../lib/colours";
import { formatNumber } from "../lib/time";
import { families as knownFamilies, familyOf, hasRegion } from "../lib/families";
import { unlessOthersStop } from "../views/dependents";
import { explainAnswer, goTo } from "../views/answer_tracks";
import type { FamilyEditor } from "../views/editors/editor";
import { editorOf } from "../views/editors/registry";
import { distinct, showFaults } from "../views/faults_view";
import { AlertsView } from "../views/query_form/alerts_view";
import { BulkView } from "../views/query_form/bulk_view";
import { DerivationView } from "../views/query_form/derivation_view";
import { DeriveField } from "../views/query_form/derive_field";
import { inWordsOfField } from "../views/query_form/duration_field";
import { askedVersion, earlierNotice, type Earlier } from "../views/query_form/earlier_version";
import { familyGallery } from "../views/query_form/family_gallery";
import { suitedQuestions } from "../views/query_form/suited_questions";
import { FilingView } from "../views/query_form/filing_view";
import { originalOf, suggestedName, type Original } from "../views/query_form/free_names";
import { PreviewView } from "../views/query_form/preview_view";
import { queryHead, stopNotice } from "../views/query_form/query_head";
import { replaceable } from "../views/replacing";
import { section } from "../views/query_form/section";
import { VerdictView, type Verdict } from "../views/query_form/verdict_view";
import { RegionEditorView } from "../views/region_editor_view";
import { mayMake } from "../lib/roles";
import { fail, openShell, pageFrame, toast } from "../views/shell_view";
import { t } from "../lib/texts";
import { anotherFeed } from "../lib/words";

const shell = openShell();
const stored = shell.data["query"] === null || shell.data["query"] === undefined ? null : queryRow(shell.data["query"]);
const families = isObject(shell.data["families"]) ? Object.keys(shell.data["families"]) : Object.keys(knownFamilies);
const parameters = new URLSearchParams(location.search);
const CHECK_AFTER_MS = 350;
/** After this long the sentence of the previous document is removed. */
const SLOW_CHECK_MS = 700;
/** Hovering over many answers in passing fetches nothing. */
const POINTED_AT_MS = 120;
const FEED_FIELD = "query-feed";
/**
 * `?from=file`: one query for each region of a file. The form then edits their template, for
 * families that watch one region.
 */
const isBulk = stored === null && parameters.get("from") === "file";
const offered = questionsOf(isBulk ? families.filter(hasRegion) : families);
/** Replaces the file's regions while the template is checked. */
const SAMPLE = { center: [0, 0], radius: 1 };

class QueryPage {
  private editor: FamilyEditor | null = null;
  /** For families that take answers of other queries as events. */
  private derive: DeriveField | null = null;
  /** The stored document, and the form's document before any change. */
  private opened: { stored: Record<string, unknown>; written: Record<string, unknown> | null } | null = null;
  /** Drafts by family, so that looking at another family loses nothing. */
  private readonly drafts = new Map<string, Record<string, unknown>>();
  private readonly map: RegionEditorView;
  private readonly alerts: AlertsView;
  private readonly filing: FilingView;
  private readonly derivation = new DerivationView();
  private readonly preview: PreviewView;
  private readonly bulk: BulkView | null;
  private readonly name = h("input", {
    class: "input",
    id: "query-name",
    maxlength: 100,
    value: stored?.name ?? "",
    autocomplete: "off",
  });
  private readonly verdict = new VerdictView();
  private readonly stage = h("div", { class: "query-stage", hidden: true });
  private readonly fields = h(
    "div",
    {},
    h("div", { class: "form-section" }, h("div", { class: "skeleton" }), h("div", { class: "skeleton" })),
  );
  private readonly body = h("div", { class: "query-body" });
  private readonly save = button(stored === null ? t("Register query") : t("Save new version"), {
    icon: "save",
    kind: "button-primary",
    id: "save-query",
    onClick: () => this.store(),
  });
  /**
   * Faults are shown at their fields once the reader has tried to continue; before that only as
   * a list of what is missing.
   */
  private isTried = stored !== null;
  /** The reader has entered something that is not stored: leaving the page asks first. */
  private isEdited = false;
  /** How many queries the file gives; null: not known yet. */
  private registrable: number | null = null;
  private readonly explained = new Latest<[rows: Detection[], now: number]>(
    (signal, rows, now) =>
      explainAnswer(this.map.feedMap, rows, { feed: this.feed, zone: shell.me.time_zone, now, colour: queryColour("preview") }, signal),
    fail,
  );
  private readonly judged = new Latest(
    (signal) => this.check(signal),
    (error) => this.verdict.failed(error),
  );

  constructor(
    private readonly feed: Feed,
    private readonly regions: RegionRow[],
    channels: Channel[],
    private question: Question,
    questions: readonly Question[],
    private readonly earlier: Earlier | null,
    /** The query that is being copied. */
    private readonly original: Original | null,
  ) {
    this.alerts = new AlertsView(stored ?? original, channels);
    this.filing = new FilingView(feed.name, stored ?? original);
    if (original !== null) this.name.value = original.copyName;
    const mapBox = h("div", { class: "panel query-map" });
    this.preview = new PreviewView(feed, shell.me.time_zone, {
      specification: () => this.specification(),
      onAnswers: (rows, period) => this.editor?.answers?.(rows, period),
      onShow: (rows, what, now) => this.showAnswers(rows, what, now),
      onFaults: (error) => this.refused(error),
    });
    this.bulk = isBulk ? this.openBulk() : null;
    const left = h(
      "div",
      { class: "query-left" },
      this.general(),
      this.bulk?.fields ?? null,
      this.fields,
      this.alerts.element,
      isBulk ? null : this.filing.element,
      this.derivation.element,
      section(t("In words"), this.verdict.element),
    );
    replace(
      this.body,
      stored === null && original === null
        ? familyGallery(questions, this.question, (question) => void this.choose(question))
        : stored === null
          ? null
          : earlierNotice(stored, this.earlier),
      stored === null || this.earlier !== null ? null : stopNotice(stored),
      this.stage,
      h("div", { class: "query-page" }, left, h("div", { class: "query-right" }, mapBox, this.bulk?.element ?? this.preview.element)),
    );
    const notice =
      stored === null && !mayMake(shell.me)
        ? h(
            "p",
            { class: "notice notice-high" },
            icon("triangle-alert"),
            h("span", {}, t("You can preview a query here, but not register it: that requires the role analyst in a team.")),
          )
        : null;
    replace(
      shell.root,
      queryHead({ stored, earlier: this.earlier, isBulk, save: this.save, onRemoved: () => (this.isEdited = false) }),
      notice,
      this.body,
    );
    left.addEventListener("input", ({ target }) => {
      // Another feed is another page, which starts again.
      if (!(target instanceof HTMLSelectElement && target.id === FEED_FIELD)) this.isEdited = true;
      this.bulk?.changed();
    });
    window.addEventListener("beforeunload", (event) => {
      if (this.isEdited) event.preventDefault();
    });
    this.map = new RegionEditorView(mapBox, feed);
    this.map.explainMissingPlaces();
    this.map.setContext(regions.map((row) => ({ id: row.id, name: row.name, geometry: row.geometry, colour: null })));
  }

  async start(): Promise<void> {
    const document = this.earlier?.specification ?? (stored ?? this.original)?.specification;
    if (document !== undefined) this.opened = { stored: document, written: null };
    await this.open(document ?? this.fresh(this.question));
    this.alerts.setKinds((stored ?? this.original)?.kinds ?? this.editor?.kinds() ?? []);
    if (stored === null) return;
    await this.derivation.load(stored.id);
  }

  /** A new document; if the address names a region, the document uses it. */
  private fresh({ family, begin }: Question): Record<string, unknown> {
    if (isBulk) return { family, version: 1, region: { region: FEATURE } };
    const region = parameters.get("region");
    const isKnown = hasRegion(family) && this.regions.some((row) => row.name === region);
    return { family, version: 1, ...begin(this.feed), ...(isKnown ? { region: { region } } : {}) };
  }

  private async choose(question: Question): Promise<void> {
    const before = this.specification();
    const earlier = this.drafts.get(draftOf(this.question)) ?? {};
    // Keys that only the other families with the same draft write.
    const ofOthers: Record<string, unknown> = {};
    for (const key of familyOf(this.question.family)?.draft?.own ?? []) ofOthers[key] = earlier[key];
    this.drafts.set(draftOf(this.question), { ...ofOthers, ...before });
    this.question = question;
    this.verdict.checking();
    const draft = this.drafts.get(draftOf(question)) ?? this.fresh(question);
    await this.open({ ...question.begin(this.feed), ...draft, family: question.family });
  }

  private async open({ derive, ...document }: Record<string, unknown>, field?: DeriveField): Promise<void> {
    const { question } = this;
    const open = await editorOf(question.family);
    if (question !== this.question) return;
    const before = this.editor;
    before?.close?.();
    this.map.stop();
    this.map.show([]);
    const { regions, map } = this;
    const feed = readDerive(derive).length === 0 ? this.feed : withAnswers(this.feed);
    this.derive = familyOf(question.family)?.isDeriving === true ? (field ?? this.deriving(derive)) : null;
    const own = this.derive === null && derive !== undefined ? { ...document, derive } : document;
    this.editor = open(own, {
      feed,
      regions,
      timeZone: shell.me.time_zone,
      map,
      common: () => this.common(),
      onChange: () => this.edited(),
      onProposal: () => this.changed(),
    });
    if (before !== null && field !== undefined) exchange(before.element, this.editor.element);
    else {
      const parts = [this.editor.element, this.derive?.element ?? null];
      replace(this.fields, ...(question.key === "derive" ? parts.reverse() : parts));
    }
    this.name.placeholder = stored?.name ?? this.title();
    if (this.opened !== null) this.opened.written ??= this.written();
    replace(this.stage, this.editor.stage);
    this.stage.hidden = this.editor.stage === null;
    this.alerts.setKinds(this.editor.kinds());
    this.preview.changed();
    void this.bulk?.check();
    await this.judged.now();
  }

  // ---- Frame

  private general(): HTMLElement {
    const feed = h(
      "select",
      { class: "select", id: FEED_FIELD, disabled: stored !== null },
      ...shell.feeds.map((one) =>
        h("option", { value: one.name, selected: one.name === this.feed.name }, one.title === "" ? one.name : one.title),
      ),
    );
    feed.addEventListener("change", () => {
      const page = address("/queries/new", { feed: feed.value, family: this.question.key, from: isBulk ? "file" : null });
      location.assign(`${page}#${FEED_FIELD}`);
      // For a reader who stays on the page.
      feed.value = this.feed.name;
    });
    return h(
      "section",
      { class: "form-section form-general" },
      isBulk ? null : h("div", { class: "field grow", "data-pointer": "/name" }, h("label", { for: "query-name" }, t("Name")), this.name),
      h("div", { class: "field", "data-pointer": "/feed" }, h("label", { for: FEED_FIELD }, t("Feed")), feed),
    );
  }

  /** Answers as dots at their last events; the selected one with its events and tracks. */
  private showAnswers(rows: Detection[], what: "all" | "pointed at" | "chosen", now: number): void {
    this.explained.drop();
    this.map.element.style.setProperty("--swatch", queryColour("preview"));
    if (what === "chosen") goTo(this.map.feedMap, rows);
    if (what !== "all") this.explained.after(POINTED_AT_MS, rows, now);
    else
      this.map.feedMap.tracks.set(
        [],
        rows.flatMap((row) => row.evidence.slice(-1)),
      );
  }

  // ---- The document

  private specification(): Record<string, unknown> {
    const written = this.written();
    return this.opened === null || this.opened.written === null ? written : kept(this.opened.stored, this.opened.written, written);
  }

  /** As the form has it. */
  private written(): Record<string, unknown> {
    const document = this.editor?.specification() ?? { family: this.question.family, version: 1 };
    return { ...document, ...this.common() };
  }

  /** Fields outside the family's own editor. */
  private common(): Record<string, unknown> {
    const derive = this.derive?.value() ?? null;
    return derive === null ? {} : { derive };
  }

  private deriving(value: unknown): DeriveField {
    const field: DeriveField = new DeriveField({
      feed: this.feed,
      own: stored?.id ?? null,
      family: this.question.family,
      value,
      onChange: (isOther) => {
        // The reader may have chosen another card while the feed's queries were loading.
        if (this.derive !== field) return;
        if (isOther) void this.widened();
        else this.changed();
        this.isEdited = true;
      },
      onProposal: () => {
        if (this.derive === field) void this.widened();
      },
    });
    return field;
  }

  /** The feed has other columns now: the editor is created again with the same document. */
  private async widened(): Promise<void> {
    await this.open(this.written(), this.derive ?? undefined);
    this.changed();
  }

  /** The document in a form that the server can check: a template gets a sample region. */
  private checkable(): Record<string, unknown> {
    const document = this.specification();
    return isBulk ? { ...document, region: SAMPLE } : document;
  }

  private openBulk(): BulkView {
    this.ready(null);
    return new BulkView(this.feed, {
      template: () => this.specification(),
      settings: () => this.alerts.settings(),
      onRegions: (shapes) => this.map.show(shapes, true),
      onReady: (count) => this.ready(count),
      onFaults: (error) => this.refused(error),
    });
  }

  private ready(count: number | null): void {
    this.registrable = count;
    this.save.disabled = count === null || count === 0;
    replace(
      this.save,
      icon("save"),
      count === null || count === 0
        ? t("Register queries")
        : count === 1
          ? t("Register 1 query")
          : t("Register {count} queries", { count: formatNumber(count) }),
    );
  }

  private async storeAll(bulk: BulkView): Promise<void> {
    const answer = await bulk.register();
    if (answer === null) {
      this.ready(this.registrable);
      return;
    }
    this.isEdited = false;
    location.assign(address("/queries/", { feed: this.feed.name, registered: answer.registered }));
  }

  private edited(): void {
    this.isEdited = true;
    this.changed();
  }

  /** The name that the query gets if the reader gives it none. */
  private title(): string {
    return this.editor?.title?.() ?? this.question.title;
  }

  private changed(): void {
    this.name.placeholder = stored?.name ?? this.title();
    this.bulk?.changed();
    this.preview.changed();
    this.judged.after(CHECK_AFTER_MS);
  }

  private async check(signal: AbortSignal): Promise<void> {
    const slow = setTimeout(() => this.verdict.checking(), SLOW_CHECK_MS);
    const answer = await post("queries/check", { feed: this.feed.name, specification: this.checkable() }, checked, signal).finally(() =>
      clearTimeout(slow),
    );
    const kinds = answer.kinds.length > 0 ? answer.kinds : (this.editor?.kinds() ?? []);
    this.showVerdict(answer);
    if (kinds.length > 0 || answer.faults.length === 0) this.alerts.setKinds(kinds);
  }

  private showVerdict({ faults: given, ...rest }: Verdict): void {
    this.editor?.faults?.(given);
    const faults = distinct(given.map((fault) => inWordsOfField(this.body, this.editor?.explained?.(fault) ?? fault)));
    const unclaimed = showFaults(this.body, this.isTried ? faults : []);
    this.verdict.show({ faults, ...rest }, this.isTried ? unclaimed : null);
  }

  private refused(error: unknown): void {
    this.isTried = true;
    if (error instanceof ApiError && error.faults.length > 0 && error.status === 400) {
      const faults = error.faults.map((fault) => ({ ...fault, pointer: fault.pointer.replace(/^\/(specification|template)/, "") }));
      this.showVerdict({ faults, sentence: null, notices: [], placement: null });
      (this.body.querySelector(".field-error") ?? this.verdict.element).scrollIntoView({ block: "center", behavior: "smooth" });
    } else {
      fail(error);
    }
  }

  private async store(): Promise<void> {
    this.isTried = true;
    if (this.bulk !== null) {
      await this.storeAll(this.bulk);
      return;
    }
    try {
      const name = this.name.value.trim() || (stored?.name ?? (await suggestedName(this.feed.name, this.title())));
      const body = { feed: this.feed.name, name, specification: this.specification(), ...this.filing.values(), ...this.alerts.settings() };
      if (stored === null) {
        const made = await post("queries/", body, queryRow);
        this.isEdited = false;
        location.assign(address("/", { feed: made.feed }));
      } else {
        const updated_at = await replaceable(
          "queries",
          stored,
          t("This query has been changed meanwhile"),
          t("Saving replaces the other change by this form. To see it first, open the query in another tab; earlier versions are kept."),
        );
        if (updated_at === null) return;
        const changes = { ...body, updated_at };
        const changed = await unlessOthersStop(
          async (stop) =>
            queryRow(
              await call(`queries/${stored.id}/`, { method: "PATCH", body: stop ? { ...changes, stop_dependents: true } : changes }),
            ),
          t("Switch off all of them"),
        );
        if (changed === null) return;
        this.isEdited = false;
        toast(
          changed.version > stored.version
            ? t("Saved as version {version}. It acts within seconds.", { version: changed.version })
            : t("Saved."),
          "good",
        );
        setTimeout(() => (this.earlier === null ? location.reload() : location.assign(location.pathname)), 900);
      }
    } catch (error) {
      this.refused(error);
    }
  }
}

/** The query that the address asks to copy. */
async function askedOriginal(): Promise<Original | null> {
  const copied = parameters.get("copy") ?? "";
  return stored !== null || !/^\d+$/.test(copied) ? null : originalOf(copied);
}

async function open(): Promise<void> {
  const original = await askedOriginal();
  const name = (stored ?? original)?.feed ?? parameters.get("feed");
  const feed = shell.feeds.find((one) => one.name === name) ?? shell.feeds[0];
  if (feed === undefined) {
    pageFrame(shell.root, t("New query")).append(linkButton(t("There are no feeds yet: create one first"), "/feeds/", "activity"));
    return;
  }
  if (name !== null && name !== feed.name) toast(anotherFeed(name), "critical");
  const earlier = await askedVersion(stored);
  const known = stored ?? original;
  const [regions, channels, questions] = await Promise.all([
    getAll(address("regions/", { feed: feed.name, page_size: 1000 }), regionParser, 20_000),
    getAll("channels/", channelParser).catch((): Channel[] => []),
    known !== null ? [plainQuestion(known.family)] : suitedQuestions(offered, feed.name),
  ]);
  const question = questions.find(({ key }) => key === parameters.get("family")) ?? questions[0]!;
  await new QueryPage(feed, regions, channels, question, questions, earlier, original).start();
  // The reader changed the feed there: the choice keeps the focus.
  if (location.hash === `#${FEED_FIELD}`) document.getElementById(FEED_FIELD)?.focus();
}

open().catch(fail);
