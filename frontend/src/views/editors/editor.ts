/** What the query page asks of a family's own editor, and what it gives it. One module a family, loaded when it is chosen. */

import type { Detection, Feed, RegionRow } from "../../lib/shapes";
import type { Fault } from "../../lib/api";
import type { Geometry } from "../../lib/regions";

export interface PointDocument {
  type: "Point";
  coordinates: [number, number];
}

export interface MapShape {
  id: string;
  geometry: Geometry | PointDocument;
  label: string;
  /** Stands over the shape instead of its label. */
  picture?: HTMLElement | null;
  /** Drawn stronger. */
  active: boolean;
  /** An active region with this has handles at its corners: called after each change, with null when the reader removed it. */
  onEdited?: (geometry: Geometry | null) => void;
}

/** The page's map as an editor may use it: show shapes, and ask the reader to draw one. */
export interface EditorMap {
  /** Shows these shapes instead of those before (fitting the map to them once, when `fit`). */
  show(shapes: readonly MapShape[], fit?: boolean): void;
  /**
   * The next shape drawn (or the next click, for "point") goes to `onDrawn`; a later call takes the earlier one's place.
   * Drawing begins at once; with `begin` false the map's tools only stand ready for it. With `onPicked` a click on a stored region
   * gives its name instead.
   */
  ask(
    kind: "region" | "point",
    onDrawn: (geometry: Geometry | [number, number]) => void,
    begin?: boolean,
    onPicked?: (name: string) => void,
  ): void;
  /** Ends what `ask` began. */
  stop(): void;
}

export interface EditorContext {
  readonly feed: Feed;
  readonly regions: readonly RegionRow[];
  /** Display time zone of the reader (IANA name). */
  readonly timeZone: string;
  readonly map: EditorMap;
  /**
   * What the page writes into the document beside the editor's part: answers of other queries as events. An editor that
   * tries the query sends it along.
   */
  readonly beside: () => Record<string, unknown>;
  /** To be called after each change of what is written; the page then checks it and shows the sentence. */
  readonly onChange: () => void;
}

/** A family's editor. The page never touches the DOM inside `element` and `stage`. */
export interface FamilyEditor {
  /** Fields, in the form's column. Elements that hold the field of a JSON pointer carry `data-pointer`: faults are shown there. */
  readonly element: HTMLElement;
  /** A large surface (graph, tree, rules) above the form's two columns; null when the map is all that is needed. */
  readonly stage: HTMLElement | null;
  /** The document as it is written now; what is missing is left out, so that the server names it. */
  specification(): Record<string, unknown>;
  /** Kinds of answers the document can give, as far as the page can tell before the server has checked it. */
  kinds(): string[];
  /**
   * Faults of the last check; those whose pointer has no `data-pointer` element of its own may be shown inside (line and
   * column of a text).
   */
  faults?(faults: readonly Fault[]): void;
  /**
   * A fault in the words of the page, at the field that mends it, where the server's words are about the document and
   * not about what is on the page.
   */
  explained?(fault: Fault): Fault;
  /** Answers of the preview, which looked back so many minutes. */
  answers?(rows: readonly Detection[], minutes: number): void;
  /** Ends what it began; the page clears the map itself. */
  close?(): void;
}

/** Makes the editor for a document (`{family, version: 1}` for a new query). */
export type OpenEditor = (document: Record<string, unknown>, context: EditorContext) => FamilyEditor;
