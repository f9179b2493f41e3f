/**
 * Undo and redo of the corners of a polygon that is being drawn: two buttons, and keys. The
 * browser's own undo would change a text field that the reader has left.
 */

import * as L from "leaflet";
import { h, iconButton } from "../lib/dom";
import { t } from "../lib/texts";

/** A part of Leaflet-Geoman, which does not export its type. */
interface PolygonDrawing {
  isRed: boolean;
  _hintMarker: { _snapped?: boolean };
  _removeLastVertex(): void;
  _createVertex(event: { latlng: L.LatLng }): void;
}

export class DrawnCorners {
  private readonly back = iconButton(t("Take back the last corner (Ctrl+Z)"), "undo-2", { onClick: () => this.undo() });
  private readonly forth = iconButton(t("Set the corner again (Ctrl+Shift+Z)"), "redo-2", { onClick: () => this.redo() });
  /** Shown while a polygon is drawn. */
  readonly element = h("div", { class: "button-group", hidden: true }, this.back, this.forth);
  private line: L.Polyline | null = null;
  /** Corners that were taken back, the last one first. */
  private taken: L.LatLng[] = [];
  private isReplaying = false;

  constructor(
    private readonly map: L.Map,
    /** Begins the same polygon without corners. */
    private readonly restart: () => void,
    /** `isRefused`: an edge to the pointer would cross another edge, so no corner can be set there. */
    private readonly onPointed: (isRefused: boolean) => void,
  ) {
    map.on("pm:drawstart", ({ shape, workingLayer }) =>
      this.begin(shape === "Polygon" && workingLayer instanceof L.Polyline ? workingLayer : null),
    );
    map.on("pm:drawend", () => this.begin(null));
    map.on("pm:intersect", () => this.line !== null && onPointed(true));
  }

  /** Whether the key was for this. */
  pressed(event: KeyboardEvent): boolean {
    if (this.line === null) return false;
    const key = event.key.toLowerCase();
    const isCommand = event.ctrlKey || event.metaKey;
    const isRedo = isCommand && (key === "y" || (key === "z" && event.shiftKey));
    const isUndo = key === "backspace" || (isCommand && key === "z" && !event.shiftKey);
    if (isRedo) this.redo();
    else if (isUndo) this.undo();
    return isRedo || isUndo;
  }

  private begin(line: L.Polyline | null): void {
    this.line = line;
    this.element.hidden = line === null;
    if (!this.isReplaying) this.taken = [];
    line?.on("pm:vertexadded", () => this.cornerSet());
    line?.on("pm:change", () => this.onPointed(this.drawing().isRed));
    this.ready();
  }

  private cornerSet(): void {
    if (!this.isReplaying) this.taken = [];
    this.ready();
  }

  private undo(): void {
    const corners = this.corners();
    const last = corners.at(-1);
    if (last === undefined) return;
    this.taken.push(last);
    this.replaying(() => (corners.length > 1 ? this.drawing()._removeLastVertex() : this.restart()));
    this.onPointed(false);
  }

  private redo(): void {
    const latlng = this.taken.pop();
    if (latlng === undefined) return;
    const drawing = this.drawing();
    // Else the corner would be set where the pointer is.
    drawing._hintMarker._snapped = false;
    this.replaying(() => drawing._createVertex({ latlng }));
  }

  private replaying(act: () => void): void {
    this.isReplaying = true;
    act();
    this.isReplaying = false;
    this.ready();
  }

  private corners(): L.LatLng[] {
    return (this.line?.getLatLngs() ?? []) as L.LatLng[];
  }

  private ready(): void {
    this.back.disabled = this.corners().length === 0;
    this.forth.disabled = this.taken.length === 0;
  }

  private drawing(): PolygonDrawing {
    return (this.map.pm.Draw as unknown as { Polygon: PolygonDrawing }).Polygon;
  }
}
