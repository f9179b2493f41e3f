/** Colours for canvases: the design tokens as the page resolves them, and a hue for each query. */

let probe: HTMLElement | null = null;

/** The token as the browser computes it under the theme in force. */
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

/** From low to high, for values in order. */
const STEPS_LIGHT = ["#4a6fd6", "#1b93a6", "#3f9a4c", "#b98a00", "#d4502a"];
const STEPS_DARK = ["#7f9cff", "#45c3d4", "#77cf7f", "#e6bd45", "#ff8a63"];

/** The colour at a place of an ordered scale, or of names that have no order. */
export function classColour(kind: "steps" | "names", place: number): string {
  const palette = kind === "steps" ? (isDark() ? STEPS_DARK : STEPS_LIGHT) : isDark() ? DARK : LIGHT;
  return palette[place % palette.length]!;
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset["theme"];
  return chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}

/** A query's colour by its place in the order of registration: neighbours differ, and it stays the same from page to page. */
export function queryColour(id: string): string {
  let hash = 0;
  for (const letter of id) hash = (hash * 31 + letter.charCodeAt(0)) >>> 0;
  const number = /^\d+$/.test(id) ? Number(id) : hash;
  const palette = isDark() ? DARK : LIGHT;
  return palette[number % palette.length]!;
}

/** Calls back when the theme changes, by choice or by the system. */
export function onThemeChange(callback: () => void): void {
  new MutationObserver(callback).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", callback);
}
