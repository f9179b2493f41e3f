/**
 * Details of the selected entity: its last report before the instant that the
 * page shows, and its answers.
 */

import { t } from "../../lib/texts";
import { entityFacts, entityReports, type EntityReports } from "../../data/entity_facts";
import type { Interval } from "../../data/interval";
import { get, isShared, query as address } from "../../lib/api";
import { queryColour } from "../../lib/colours";
import { h, iconButton, replace } from "../../lib/dom";
import { Latest } from "../../lib/latest";
import { kindName } from "../../lib/words";
import { fail } from "../shell_view";
import type { LiveModel } from "./model";

/** How often a live entity is requested; after a jump of the clock it is requested immediately. */
const EVERY_MS = 3000;
const MOST_ANSWERS = 6;

export interface EntityCardHandlers {
  onClose: () => void;
  onAnswer: (interval: Interval) => void;
}

export class EntityCard {
  readonly element = h("section", { class: "entity-card", hidden: true, "aria-label": t("The chosen entity") });
  private readonly question = new Latest<[entity: string]>((signal, entity) => this.ask(signal, entity), fail);
  private entity: string | null = null;
  private reports: EntityReports | null = null;
  private shown = "";
  private readonly facts = h("dl", { class: "dl num" });

  constructor(
    private readonly model: LiveModel,
    private readonly handlers: EntityCardHandlers,
  ) {}

  open(entity: string | null): void {
    if (entity === this.entity) return;
    this.question.drop();
    [this.entity, this.reports] = [entity, null];
    this.show();
    if (entity !== null) void this.question.now(entity);
  }

  /** The clock jumped. */
  again(): void {
    if (this.entity !== null) this.question.after(100, this.entity);
  }

  close(): void {
    this.open(null);
  }

  private async ask(signal: AbortSignal, entity: string): Promise<void> {
    const { feed, clock } = this.model;
    if (!document.hidden) {
      const t = clock.isLive ? null : Math.floor(this.model.now());
      this.reports = await get(address(`feeds/${feed.name}/entity`, { id: entity, t }), entityReports, signal);
      this.show();
    }
    this.question.after(EVERY_MS, entity);
  }

  /** Unchanged parts are not replaced: they may have the keyboard focus. */
  show(): void {
    const { entity, reports, model } = this;
    this.element.hidden = entity === null;
    if (entity === null) return;
    const facts = reports === null ? [] : entityFacts(reports, model.feed, model.now());
    const answers = this.answers(entity);
    replace(this.facts, ...facts.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]));
    const shown = JSON.stringify([entity, reports !== null && facts.length === 0, answers.map((one) => one.key)]);
    if (shown === this.shown) return;
    this.shown = shown;
    replace(
      this.element,
      h(
        "div",
        { class: "row spread" },
        h("h3", {}, isShared() ? entity : h("a", { href: address(`/feeds/${model.feed.name}/entity`, { id: entity }) }, entity)),
        iconButton(t("Stop following {entity}", { entity }), "x", { onClick: () => this.handlers.onClose() }),
      ),
      reports !== null && facts.length === 0 ? h("p", { class: "small muted" }, t("No report near this instant.")) : this.facts,
      answers.length === 0 ? null : h("ul", {}, ...answers.map((one) => this.answer(one))),
    );
  }

  /** Answers that hold at the instant of the page. */
  private answers(entity: string): Interval[] {
    const now = this.model.now();
    const found: Interval[] = [];
    for (const row of this.model.queries) {
      const columns = this.model.intervals.of(row.id);
      columns.intervals.forEach((one, i) => {
        if (one.start <= now && now < columns.end[i]! && !one.isRetracted && one.entities.includes(entity)) found.push(one);
      });
    }
    return found.slice(0, MOST_ANSWERS);
  }

  private answer(interval: Interval): HTMLElement {
    const text = `${kindName(interval.kind)} · ${this.model.queryName(interval.query)}`;
    const swatch = h("span", { class: "swatch", vars: { "--swatch": queryColour(interval.query) } });
    return h("li", {}, swatch, h("button", { type: "button", class: "query-name", onClick: () => this.handlers.onAnswer(interval) }, text));
  }
}
