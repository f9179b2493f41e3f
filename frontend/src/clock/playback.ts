/**
 * The positions at the clock's instant while it is not live: spans of the past are fetched ahead
 * and written into the entities' columns.
 *
 * From frame to frame only new samples are applied, backwards only entities that moved; after a
 * jump the last positions of all.
 */

import { TRAIL, type EntitiesData } from "../data/entities_data";
import { countUpTo, lastSamples, parseMovements, type Movements } from "../data/movements";
import { getBytes, query as address } from "../lib/api";

export interface PlaybackSources {
  feed: string;
  unitsPerMs: number;
  entities: EntitiesData;
  onFault: (error: unknown) => void;
  /** The oldest instant in the log is known. */
  onBegin: (t: number) => void;
}

/** How long a fetched span lasts in wall-clock milliseconds, and its minimum in event time. */
const [SPAN_WALL_MS, LEAST_SPAN_MS] = [8000, 60_000];
/** After a jump the first span is shorter, so that the map is updated soon. */
const FIRST_WALL_MS = 2000;
/**
 * After the server cut a span short, only this much is requested: the density
 * of rows varies over time.
 */
const SURE = 0.8;
/** One sample of each entity per this many wall-clock milliseconds. */
const SAMPLE_WALL_MS = 200;
const MOST_SPANS = 4;
/** A span with up to this factor fewer samples than its rate needs is sufficient. */
const COARSER = 4;

interface Span {
  from: number;
  to: number;
  step: number;
}

const covers = (one: Span, t: number, step: number): boolean => one.from <= t && t < one.to && one.step <= COARSER * step;

export class Playback {
  /**
   * In order of use: the least recently used span is first, and is removed when a new one arrives.
   */
  private spans: (Span & { span: Movements })[] = [];
  private shown: { span: Movements; count: number; t: number } | null = null;
  private asked: AbortController | null = null;
  private wanted: Span | null = null;
  /** The longest span that the server returns completely, as far as known. */
  private longest = Infinity;

  constructor(private readonly sources: PlaybackSources) {}

  /** Whether the map shows the instant `t`; its data may still be loading. */
  isShown(t: number): boolean {
    return this.shown?.t === t;
  }

  /**
   * Shows the instant `t` of a clock that runs at `rate` (0: paused). Returns whether
   * anything changed on the map.
   */
  show(t: number, rate: number): boolean {
    const step = this.stepOf(rate);
    const found = this.spans.find((one) => covers(one, t, step));
    if (found === undefined) {
      const length = Math.min(this.lengthOf(rate, FIRST_WALL_MS), this.longest / 1.25);
      const from = rate < 0 ? t - length : t - length / 4;
      if (this.wanted === null || !covers(this.wanted, t, step)) this.fetch({ from, to: from + 1.25 * length, step });
      return false;
    }
    this.spans = [...this.spans.filter((one) => one !== found), found];
    this.ahead(found.span, t, rate);
    return this.put(found.span, t);
  }

  /** Drops the fetched spans: the clock is live, and the next playback fetches again. */
  close(): void {
    this.asked?.abort();
    this.asked = null;
    this.wanted = null;
    this.shown = null;
    this.spans = [];
  }

  /**
   * Includes the tracks of the last minute, so that headings and trails are visible from the start.
   */
  async warmUp(present: number): Promise<Movements> {
    const span = { from: present - LEAST_SPAN_MS * this.sources.unitsPerMs, to: present + 1, step: this.stepOf(0) };
    return this.load(span, new AbortController().signal);
  }

  private stepOf(rate: number): number {
    return Math.max(1, Math.round(SAMPLE_WALL_MS * Math.max(1, Math.abs(rate)) * this.sources.unitsPerMs));
  }

  private lengthOf(rate: number, wallMs: number): number {
    return Math.max(LEAST_SPAN_MS, wallMs * Math.abs(rate)) * this.sources.unitsPerMs;
  }

  /** Requests the next span once half of this one has been played. */
  private ahead(span: Movements, t: number, rate: number): void {
    if (rate === 0 || this.wanted !== null) return;
    const [length, step] = [Math.min(this.lengthOf(rate, SPAN_WALL_MS), this.longest), this.stepOf(rate)];
    const edge = rate > 0 ? span.to : span.from - 1;
    if (Math.abs(edge - t) > length / 2 || this.spans.some((one) => covers(one, edge, step))) return;
    const from = rate > 0 ? edge : edge + 1 - length;
    this.fetch({ from, to: from + length, step });
  }

  /** One request at a time: a jump elsewhere aborts the running one. */
  private fetch(wanted: Span): void {
    this.asked?.abort();
    const request = new AbortController();
    this.asked = request;
    this.wanted = wanted;
    this.load(wanted, request.signal)
      .then((span) => {
        this.spans = [...this.spans.slice(1 - MOST_SPANS), { from: span.from, to: span.to, step: wanted.step, span }];
        if (span.to < wanted.to) this.longest = Math.max(1, SURE * (span.to - span.from));
        if (span.begin !== null) this.sources.onBegin(span.begin);
      })
      .catch((error: unknown) => {
        if (!request.signal.aborted) this.sources.onFault(error);
      })
      .finally(() => {
        if (this.asked === request) [this.asked, this.wanted] = [null, null];
      });
  }

  private async load({ from, to, step }: Span, signal: AbortSignal): Promise<Movements> {
    const path = address(`feeds/${this.sources.feed}/movements`, { from: Math.floor(from), to: Math.ceil(to), step });
    return parseMovements(await getBytes(path, signal));
  }

  private put(span: Movements, t: number): boolean {
    const { entities } = this.sources;
    const before = this.shown;
    const count = countUpTo(span, t);
    this.shown = { span, count, t };
    const isSameSpan = before?.span === span;
    if (before === null) this.putAll(span, count);
    else if (before.t <= t && (isSameSpan || before.span.to === span.from)) this.putNew(span, isSameSpan ? before.count : 0, count);
    else if (isSameSpan) this.turnBack(span, before.count, count);
    else this.putAll(span, count);
    entities.tick(t);
    return !isSameSpan || before.count !== count;
  }

  private putNew(span: Movements, from: number, to: number): void {
    for (let n = from; n < to; n++) this.putSample(span, n);
  }

  /**
   * Entities that reported since are moved back. If one had not appeared
   * yet, all are written again.
   */
  private turnBack(span: Movements, from: number, to: number): void {
    const since = new Set(span.entity.subarray(to, from));
    for (const e of since) {
      if (span.order[span.starts[e]!]! < to) continue;
      this.putAll(span, to);
      return;
    }
    this.sources.entities.turnBack(Array.from(since, (e) => span.entities[e]!));
    for (const e of since) this.putLast(span, e, to);
  }

  private putAll(span: Movements, count: number): void {
    this.sources.entities.clear();
    for (let e = 0; e < span.entities.length; e++) this.putLast(span, e, count);
  }

  /** The last position of an entity, and its track as far as the map shows it. */
  private putLast(span: Movements, e: number, count: number): void {
    for (const n of lastSamples(span, e, count, TRAIL)) this.putSample(span, n);
  }

  private putSample({ entities, entity, t, x, y }: Movements, n: number): void {
    this.sources.entities.put([entities[entity[n]!]!, x[n]!, y[n]!, t[n]!]);
  }
}
