/**
 * The interface between the query page and a family's editor. One module per family,
 * loaded when it is chosen.
 */

import type { PeriodRequest } from "../../data/period";
import type { Detection, Feed, RegionRow } from "../../lib/shapes";
import type { Fault } from "../../lib/api";
import type { Box, Geometry } from "../../lib/regions";

export interface PointDocument {
  type: "Point";
  coordinates: [number, number];
}

export interface MapShape {
  id: string;
  geometry: Geometry | PointDocument;
  label: string;
  /** Shown over the shape instead of its label. */
  picture?: HTMLElement | null;
  /** Drawn highlighted. */
  active: boolean;
  /**
   * An active region with this has handles at its vertices: called after each change, with null
   * when the reader removed it.
   */
  onEdited?: (geometry: Geometry | null) => void;
}

/** The page's map for an editor: show shapes, and ask the reader to draw one. */
export interface EditorMap {
  /** Replaces the shapes shown (and with `fit` fits the map to them once). */
  show(shapes: readonly MapShape[], fit?: boolean): void;
  /**
   * The next shape drawn (or the next click, for "point") goes to `onDrawn`; a later call replaces
   * an earlier one. Drawing begins immediately; with `begin` false the map's tools are only
   * enabled. With `onPicked` a click on a stored region returns its name instead.
   */
  ask(
    kind: "region" | "point",
    onDrawn: (geometry: Geometry | [number, number]) => void,
    begin?: boolean,
    onPicked?: (name: string) => void,
  ): void;
  /** Cancels `ask`. */
  stop(): void;
  /** What the map shows, in the feed's coordinates. */
  shownBox(): Box;
}

export interface EditorContext {
  readonly feed: Feed;
  readonly regions: readonly RegionRow[];
  /** Display time zone of the reader (IANA name). */
  readonly timeZone: string;
  readonly map: EditorMap;
  /**
   * The page's addition to the editor's document: answers of other queries as events. An editor
   * that tries the query sends it too.
   */
  readonly common: () => Record<string, unknown>;
  /**
   * To be called after each change of the document; the page then checks it and shows the sentence.
   */
  readonly onChange: () => void;
  /**
   * Instead, when the editor replaced its own proposal: the reader has entered
   * nothing that could be lost.
   */
  readonly onProposal: () => void;
}

/** A family's editor. The page never touches the DOM inside `element` and `stage`. */
export interface FamilyEditor {
  /**
   * Fields of the form. Elements that contain the field of a JSON pointer have
   * `data-pointer`: faults are shown there.
   */
  readonly element: HTMLElement;
  /**
   * A large surface (graph, tree, rules) above the form's two columns; null if the map is enough.
   */
  readonly stage: HTMLElement | null;
  /** The current document; missing parts are left out, so that the server reports them. */
  specification(): Record<string, unknown>;
  /**
   * Kinds of answers of the document, as far as the page knows them before the server has checked
   * it.
   */
  kinds(): string[];
  /** A name for the query, better than that of its question; null: none. */
  title?(): string | null;
  /**
   * Faults of the last check; those whose pointer has no `data-pointer` element may be shown inside
   * (line and column of a text).
   */
  faults?(faults: readonly Fault[]): void;
  /**
   * Replaces a fault about the document by one about the page, at the field that causes it, if the
   * server's text would not make sense there.
   */
  explained?(fault: Fault): Fault;
  /** Answers of the preview over a period. */
  answers?(rows: readonly Detection[], period: PeriodRequest): void;
  /** Releases its resources; the page clears the map. */
  close?(): void;
}

/** Creates the editor for a document (`{family, version: 1}` for a new query). */
export type OpenEditor = (document: Record<string, unknown>, context: EditorContext) => FamilyEditor;
