/** Colours for canvases: the computed values of design tokens, and a hue for each query. */

let probe: HTMLElement | null = null;

/** The computed value of the token in the current theme. */
export function token(name: string): string {
  if (probe === null) {
    probe = document.createElement("span");
    probe.hidden = true;
  }
  if (!probe.isConnected) document.body.appendChild(probe);
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

const LIGHT = [
  "#0f7ea8",
  "#c2571a",
  "#5a5fc7",
  "#2b8453",
  "#b23a78",
  "#8a6a00",
  "#7a4fb0",
  "#007d80",
  "#a8432f",
  "#55722b",
  "#3d6fd1",
  "#9a4f8f",
];
const DARK = [
  "#4fc0e8",
  "#f2925a",
  "#9aa0ff",
  "#66cf95",
  "#f283b6",
  "#dcb74a",
  "#c19bf5",
  "#4fd0d0",
  "#f08b78",
  "#a9cc74",
  "#82adff",
  "#e09bd4",
];

/** From low to high, for ordered values. */
const STEPS_LIGHT = ["#4a6fd6", "#1b93a6", "#3f9a4c", "#b98a00", "#d4502a"];
const STEPS_DARK = ["#7f9cff", "#45c3d4", "#77cf7f", "#e6bd45", "#ff8a63"];

/** The colour at an index of an ordered scale, or of a palette for unordered names. */
export function classColour(kind: "steps" | "names", place: number): string {
  const palette = kind === "steps" ? (isDark() ? STEPS_DARK : STEPS_LIGHT) : isDark() ? DARK : LIGHT;
  return palette[place % palette.length]!;
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset["theme"];
  return chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}

/** Each hue in three variants: normal, darker, lighter. */
const SHADES: readonly { with: number; share: number }[] = [
  { with: 0, share: 0 },
  { with: 0, share: 0.35 },
  { with: 255, share: 0.35 },
];
/** How many queries of a feed get distinct colours. */
export const PLACES = LIGHT.length * SHADES.length;

const places = new Map<string, number>();

/**
 * Gives each query of a feed a different colour, as far as there are colours.
 *
 * A query gets the index that its number hashes to, or the next free one: so it mostly keeps its
 * colour when others change.
 */
export function spreadColours(ids: readonly string[]): void {
  const taken = new Set<number>();
  for (const id of [...ids].sort((a, b) => numberOf(a) - numberOf(b))) {
    let place = numberOf(id) % PLACES;
    for (let tries = 0; taken.has(place) && tries < PLACES; tries++) place = (place + 1) % PLACES;
    taken.add(place);
    places.set(id, place);
  }
}

/** A query's colour, the same from page to page; see `spreadColours`. */
export function queryColour(id: string): string {
  return colourAt(places.get(id) ?? numberOf(id) % PLACES);
}

function numberOf(id: string): number {
  if (/^\d+$/.test(id)) return Number(id);
  let hash = 0;
  for (const letter of id) hash = (hash * 31 + letter.charCodeAt(0)) >>> 0;
  return hash;
}

/** The colour of an index from 0 to `PLACES` - 1 as `#rrggbb`. */
export function colourAt(place: number): string {
  const palette = isDark() ? DARK : LIGHT;
  const hue = palette[place % palette.length]!;
  const shade = SHADES[Math.floor(place / palette.length) % SHADES.length]!;
  const channels = [1, 3, 5].map((at) => {
    const value = parseInt(hue.slice(at, at + 2), 16);
    return Math.round(value + (shade.with - value) * shade.share);
  });
  return `#${channels.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

/** Calls back when the theme changes, by the reader's choice or by the system. */
export function onThemeChange(callback: () => void): void {
  new MutationObserver(callback).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", callback);
}
