// Collects the icons in use (Lucide, ISC licence) into one sprite file: node dev/make_icons.mjs
import { readFileSync, writeFileSync } from "node:fs";

const names = [
  "activity", "arrow-left", "arrow-right", "ban", "bell", "bell-ring", "check", "check-check", "chevron-down", "chevron-left", "chevron-right", "chevron-up",
  "circle", "circle-alert", "circle-check", "circle-play", "circle-stop", "circle-user", "clock", "copy", "crosshair", "download", "eye", "eye-off", "ellipsis",
  "file-up", "filter", "gauge", "git-branch", "history", "info", "key-round", "layers", "list", "list-filter", "locate-fixed", "log-out", "map", "map-pin", "maximize",
  "message-square", "minus", "monitor", "moon", "move", "pause", "pencil", "play", "plus", "radio", "rectangle-horizontal", "refresh-cw", "rotate-ccw", "route",
  "save", "scan-search", "search", "send", "settings-2", "shapes", "shield-check", "skip-forward", "spline", "square-dashed", "square-dashed-mouse-pointer", "sun", "table-2", "target",
  "timer", "trash-2", "triangle-alert", "undo-2", "upload", "users", "waypoints", "webhook", "wifi", "wifi-off", "x", "pentagon", "power", "zap", "car", "ship", "keyboard", "link", "handshake", "folder",
  "bookmark", "sliders-horizontal", "bell-off", "navigation", "hourglass", "sigma", "circle-slash", "workflow", "group", "palette", "flame", "share-2",
];
const symbols = names.map((name) => {
  const file = readFileSync(new URL(`../node_modules/lucide-static/icons/${name}.svg`, import.meta.url), "utf8");
  const inner = file.slice(file.indexOf(">", file.indexOf("<svg")) + 1, file.lastIndexOf("</svg>")).replace(/\s*\n\s*/g, "");
  return `<symbol id="${name}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round">${inner}</symbol>`;
});
const text = `<svg xmlns="http://www.w3.org/2000/svg">\n<!-- Icons by Lucide (https://lucide.dev), ISC licence. -->\n${symbols.join("\n")}\n</svg>\n`;
writeFileSync(new URL("../../static/icons/sprite.svg", import.meta.url), text);
console.log(`${names.length} icons`);
