/**
 * The user's choices on the live page, and their form in the address: a link
 * shows the same view to others.
 */

export interface ViewState {
  feed: string | null;
  /** Hidden queries. */
  hidden: string[];
  /** Entities selected on the map or by search; none means all. */
  entities: string[];
  /** The detection with open details. */
  detection: string | null;
  /** Brushed time range, in the feed's unit, half-open. */
  range: [number, number] | null;
  /** Time window of the timeline; null: it follows the feed's clock with length `span`. */
  window: [number, number] | null;
  /**
   * The instant that the page shows, within `window`; null is the present, or with
   * a window its last instant.
   */
  instant: number | null;
  /** Length of the window while it follows, in the feed's unit; null is the feed's default. */
  span: number | null;
  /** Centre (x, y) and zoom of the map; null is the feed's own view. */
  map: { x: number; y: number; zoom: number } | null;
  mode: "timeline" | "list";
}

export function noChoice(feed: string | null = null): ViewState {
  return {
    feed,
    hidden: [],
    entities: [],
    detection: null,
    range: null,
    window: null,
    instant: null,
    span: null,
    map: null,
    mode: "timeline",
  };
}

const SEPARATOR = "~";

function numbers(text: string | null, count: number): number[] | null {
  if (text === null) return null;
  const parts = text.split(SEPARATOR).map(Number);
  return parts.length === count && parts.every(Number.isFinite) ? parts : null;
}

function pairOf(text: string | null): [number, number] | null {
  const found = numbers(text, 2);
  return found !== null && found[0]! < found[1]! ? [found[0]!, found[1]!] : null;
}

/** Malformed parts of an address are ignored; the others apply. */
export function fromSearch(search: string): ViewState {
  const at = new URLSearchParams(search);
  const place = numbers(at.get("at"), 3);
  const span = Number(at.get("span"));
  const instant = at.get("t");
  return {
    feed: at.get("feed"),
    hidden: at.getAll("hide").filter((id) => id !== ""),
    entities: at.getAll("entity").filter((id) => id !== ""),
    detection: at.get("detection"),
    range: pairOf(at.get("range")),
    window: pairOf(at.get("window")),
    instant: instant !== null && instant !== "" && Number.isFinite(Number(instant)) ? Number(instant) : null,
    span: Number.isFinite(span) && span > 0 ? span : null,
    map: place === null ? null : { x: place[0]!, y: place[1]!, zoom: place[2]! },
    mode: at.get("view") === "list" ? "list" : "timeline",
  };
}

export function toSearch(state: ViewState): string {
  const at = new URLSearchParams();
  if (state.feed !== null) at.set("feed", state.feed);
  for (const query of state.hidden) at.append("hide", query);
  for (const entity of state.entities) at.append("entity", entity);
  if (state.detection !== null) at.set("detection", state.detection);
  if (state.range !== null) at.set("range", state.range.map(Math.round).join(SEPARATOR));
  if (state.window !== null) at.set("window", state.window.map(Math.round).join(SEPARATOR));
  // Rounded up to a full second: else the link would show the last instant of a second as another
  // second.
  if (state.instant !== null) at.set("t", String(Math.floor(state.instant)));
  if (state.span !== null) at.set("span", String(Math.round(state.span)));
  if (state.map !== null) at.set("at", [state.map.x, state.map.y, state.map.zoom].join(SEPARATOR));
  if (state.mode === "list") at.set("view", "list");
  const text = at.toString();
  return text === "" ? "" : `?${text}`;
}
