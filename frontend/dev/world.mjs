// A small made-up world for the mock server: cars on a street grid, vessels in a strait, people on a plaza.
let seed = 7;
export const random = () => ((seed = (seed * 1664525 + 1013904223) >>> 0) / 2 ** 32);
const CITY = [11.575, 48.137];
const START = Date.now();
export const clock = (feed) => (feed === "plaza" ? Math.floor((Date.now() - START) / 40) + 30000 : Date.now());
export const owner = { owner: { id: 1, name: "analyst" }, team: null, public: true, editable: true, created_at: "2026-11-21T08:00:00Z", updated_at: "2026-11-21T08:10:00Z" };

export const feeds = [
  { name: "city", title: "City traffic", crs: "geographic", time: "ms", tick: 1, lateness: 2000, dedupe: true, columns: { speed: "float", kind: "string" }, wall_clock: true, retention_hours: 72, query_version: 12, plan_image: null, plan_bounds: null, view: { center: CITY, zoom: 13 }, ...owner },
  { name: "strait", title: "Strait vessels", crs: "geographic", time: "ms", tick: 1, lateness: 10000, dedupe: true, columns: { sog: "float", heading: "float" }, wall_clock: true, retention_hours: 72, query_version: 3, plan_image: null, plan_bounds: null, view: { center: [10.9, 55.6], zoom: 8 }, ...owner },
  { name: "plaza", title: "Plaza camera", crs: "planar", time: "ticks", tick: 1, lateness: 25, dedupe: true, columns: {}, wall_clock: false, retention_hours: 72, query_version: 3, plan_image: "/mock/plan.svg", plan_bounds: [0, 0, 384, 288], view: {}, ...owner },
];

const D = 0.0055;
const square = (x, y, w, h) => ({ type: "Polygon", coordinates: [[[x, y], [x + w, y], [x + w, y + h], [x, y + h], [x, y]]] });
export const regions = [];
export const queries = [];
let nextRegion = 1;
const addRegion = (feed, name, geometry, tags) => {
  regions.push({ id: nextRegion++, feed, name, geometry, bbox: [0, 0, 1, 1], tags, used_by: [], ...owner });
  return regions.at(-1);
};
const addQuery = (feed, name, family, specification, severity, alert_kinds, sentence, kinds) => {
  const names = JSON.stringify(specification).match(/"region":"([^"]+)"/);
  const used = regions.find((r) => r.feed === feed && names && r.name === names[1]);
  queries.push({ id: queries.length + 1, feed, name, description: "", family, version: 1, enabled: true, severity, alert_kinds, kinds, specification: { family, version: 1, ...specification }, sentence, regions: used ? [{ id: used.id, name: used.name }] : [], ...owner });
  if (used) used.used_by.push({ id: queries.length, name });
};
for (let i = 0; i < 24; i++) {
  const [gx, gy] = [Math.floor(random() * 14) - 7, Math.floor(random() * 10) - 5];
  const [x, y] = [CITY[0] + gx * D, CITY[1] + gy * D * 0.66];
  addRegion("city", `garage ${i + 1}`, square(x - 0.0009, y - 0.0006, 0.0018, 0.0012), ["garage"]);
}
addRegion("city", "old town", { type: "Polygon", coordinates: [[[11.566, 48.133], [11.571, 48.1315], [11.58, 48.1325], [11.5845, 48.1375], [11.582, 48.142], [11.575, 48.1435], [11.567, 48.141], [11.564, 48.1365], [11.566, 48.133]]] }, ["zone"]);
addRegion("city", "station", { center: [11.5585, 48.1402], radius: 420 }, ["zone"]);
for (let i = 0; i < Number(process.env.REGIONS ?? 60); i++) addRegion("city", `billboard ${i + 1}`, { center: [CITY[0] + (random() - 0.5) * 0.1, CITY[1] + (random() - 0.5) * 0.05], radius: 60 + random() * 60 }, ["advertisement"]);
addRegion("strait", "Great Belt reserve", { type: "Polygon", coordinates: [[[10.75, 55.3], [10.98, 55.28], [11.05, 55.5], [10.9, 55.62], [10.72, 55.5], [10.75, 55.3]]] }, ["protected"]);
addRegion("strait", "Kalundborg approach", { center: [11.05, 55.72], radius: 9000 }, ["port"]);
addRegion("plaza", "fountain", { center: [190, 140], radius: 46 }, []);
addRegion("plaza", "north door", square(300, 210, 60, 50), []);
const stay = "Reports when something enters and does not leave again within 3 minutes.";
for (let i = 0; i < 8; i++) addQuery("city", `Parked in garage ${i + 1}`, "transition", { region: { region: `garage ${i + 1}` }, within: "PT3M", types: ["passed", "stayed_in"] }, i % 3 ? "low" : "high", ["stayed_in"], `When something enters garage ${i + 1}: tells whether it leaves again within 3 minutes, or stays.`, ["passed", "stayed_in"]);
addQuery("city", "Old town border", "border", { region: { region: "old town" } }, "info", [], "Reports when something enters or leaves old town.", ["in", "out"]);
addQuery("city", "Station visits", "border", { region: { region: "station" } }, "info", ["in"], "Reports when something enters or leaves station.", ["in", "out"]);
addQuery("city", "Speeding", "border", { ranges: { speed: [22, null] } }, "critical", ["in"], "Reports when speed rises to 22 or more, or falls below it.", ["in", "out"]);
addQuery("city", "Round of five garages", "motion", { predicates: [1, 2, 3, 4, 5].map((n) => ({ inside: { region: `garage ${n}` } })), horizon: "PT30M", every: "PT10S" }, "high", ["match"], "Reports who is in garages 1 to 5 one after the other within 30 minutes.", ["match"]);
addQuery("strait", "Reserve entered", "border", { region: { region: "Great Belt reserve" } }, "critical", ["in"], "Reports when something enters or leaves Great Belt reserve.", ["in", "out"]);
addQuery("strait", "Long stay at the approach", "transition", { region: { region: "Kalundborg approach" }, within: "PT30M", types: ["stayed_in"] }, "high", ["stayed_in"], stay, ["stayed_in"]);
addQuery("plaza", "At the fountain", "border", { region: { region: "fountain" } }, "low", ["in"], "Reports when something enters or leaves fountain.", ["in", "out"]);
addQuery("city", "Convoy", "constraint", { variables: { V1: {}, V2: {}, V3: {} }, constraints: [] }, "info", [], "Reports when three cars pass one place within a minute.", ["match"]);
addQuery("plaza", "Who moves with whom", "calculus", { program: "", outputs: ["moving", "activity"], window: 1000, step: 250 }, "info", [], "Reports who moves together and what each does.", ["moving", "activity"]);

/** As if another user registered a query now. */
export const addForeignQuery = () => addQuery("city", `Registered at ${new Date().toLocaleTimeString("en-GB")}`, "border", { region: { region: "old town" } }, "info", [], "Reports when something enters or leaves old town.", ["in", "out"]);

const movers = { city: [], strait: [], plaza: [] };
const many = Number(process.env.CARS ?? 1200);
for (let i = 0; i < many; i++) {
  const along = random() < 0.5;
  movers.city.push({ id: `car-${i + 1}`, along, line: Math.floor(random() * 24) - 12, p: (random() - 0.5) * 0.14, v: (0.00009 + random() * 0.00013) * (random() < 0.5 ? -1 : 1), wobble: random() * 0.0001 });
}
for (let i = 0; i < 160; i++) movers.strait.push({ id: `vessel ${219000000 + i * 137}`, x: 10.6 + random() * 0.9, y: 55.2 + random() * 0.9, a: random() * 6.28, v: 0.0002 + random() * 0.0004 });
for (let i = 0; i < 24; i++) movers.plaza.push({ id: `person ${i}`, x: random() * 384, y: random() * 288, a: random() * 6.28, v: 0.4 + random() });
const turn = (m) => {
  if (random() < 0.06) {
    const [x, y] = at(m);
    m.along = !m.along;
    m.line = Math.round(m.along ? (y - CITY[1]) / (D * 0.66) : (x - CITY[0]) / D);
    m.p = m.along ? x - CITY[0] : y - CITY[1];
  }
};
const at = (m) => (m.along ? [CITY[0] + m.p, CITY[1] + m.line * D * 0.66 + m.wobble] : [CITY[0] + m.line * D + m.wobble, CITY[1] + m.p * 0.66]);
export function step(feed) {
  for (const m of movers[feed]) {
    if (feed === "city") {
      m.p += m.v;
      if (Math.abs(m.p) > 0.075) m.v = -m.v;
      turn(m);
      if (!m.rounded) m.rounded = true;
    } else {
      m.a += (random() - 0.5) * (feed === "plaza" ? 0.5 : 0.1);
      m.x += Math.cos(m.a) * m.v;
      m.y += Math.sin(m.a) * m.v * 0.6;
      if (feed === "plaza" && (m.x < 8 || m.x > 376 || m.y < 8 || m.y > 280)) m.a += 2.6;
    }
  }
}
export function positions(feed) {
  const t = clock(feed);
  // Every fourth person is away for half of each minute, and comes back somewhere else.
  const isHere = (m, i) => feed !== "plaza" || i % 4 > 0 || (Date.now() / 1000 + i * 7) % 60 < 30;
  return movers[feed].filter(isHere).map((m) => (feed === "city" ? [m.id, ...at(m), t] : [m.id, m.x, m.y, t]));
}
export const anyone = (feed) => movers[feed][Math.floor(random() * Math.min(90, movers[feed].length))];
const hex = (n) => n.toString(16).padStart(32, "0");
let nextKey = 1;
export const makeDetection = (query, kind, entities, start, end) => {
  const feed = queries.find((q) => q.id === query).feed;
  const m = movers[feed].find((o) => o.id === entities[0]);
  const [x, y] = feed === "city" ? at(m) : [m.x, m.y];
  return { id: hex(nextKey++), query, version: 1, kind, entities, value: null, start, end, evidence: [{ variable: null, entity: entities[0], t: start - 4000, x: x - 0.0006, y }, { variable: null, entity: entities[0], t: start, x, y }], weight: 1, backfill: false, detected_at: Date.now() };
};
export const history = { city: [], strait: [], plaza: [] };
for (const q of queries) {
  const unit = q.feed === "plaza" ? 0.025 : 1;
  const now = clock(q.feed);
  const count = process.env.INTERVALS && q.family === "transition" && q.feed === "city" ? Number(process.env.INTERVALS) / 8 : q.feed === "city" ? (q.id === 9 || q.id === 10 ? 160 : 26) : 40;
  for (let i = 0; i < count; i++) {
    const who = [anyone(q.feed).id];
    const start = Math.round(now - random() * 1500_000 * unit);
    const length = Math.round((20_000 + random() * 200_000) * unit);
    if (q.family === "border") {
      if (history[q.feed].some((d) => d.query === q.id && d.entities[0] === who[0])) continue;
      history[q.feed].push(makeDetection(q.id, "in", who, start, start));
      if (start + length < now) history[q.feed].push(makeDetection(q.id, "out", who, start + length, start + length));
    } else if (q.family === "constraint") {
      const all = [anyone(q.feed).id, anyone(q.feed).id, anyone(q.feed).id];
      if (new Set(all).size < 3) continue;
      const made = makeDetection(q.id, "match", all, start, start + 45_000);
      made.evidence = all.map((entity, n) => ({ ...makeDetection(q.id, "match", [entity], start, start).evidence[1], variable: `V${n + 1}`, t: start + n * 22_000 }));
      history[q.feed].push(made);
    } else if (q.family === "calculus") {
      const isPair = i % 3 === 0;
      const group = isPair ? [anyone(q.feed).id, anyone(q.feed).id] : who;
      const made = makeDetection(q.id, isPair ? "moving" : "activity", group, start, start + length < now ? start + length : null);
      made.value = isPair ? "true" : ["walking", "running", "inactive"][i % 3];
      made.evidence = [];
      history[q.feed].push(made);
    } else {
      history[q.feed].push(makeDetection(q.id, random() < 0.6 ? "passed" : "stayed_in", who, start, Math.min(now, start + length)));
    }
  }
}
export const alerts = [];
export const makeAlert = (d, state = "new") => {
  const q = queries.find((item) => item.id === d.query);
  const row = { id: alerts.length + 1, feed: q.feed, query: q.id, query_name: q.name, kind: d.kind, entities: d.entities, value: null, start: d.start, end: d.end, severity: q.severity, state, opened_at: new Date(q.feed === "plaza" ? Date.now() - 60000 : d.start).toISOString(), detection: d.id, acknowledged_by: state === "new" ? null : "mara", acknowledged_at: null, resolved_by: null, resolved_at: null, resolution: "", comments: 0, editable: true };
  alerts.push(row);
  return row;
};
for (const feed of Object.keys(history)) {
  history[feed].sort((a, b) => a.start - b.start);
  for (const d of history[feed]) if (queries.find((q) => q.id === d.query).alert_kinds.includes(d.kind)) makeAlert(d, random() < 0.35 ? "new" : random() < 0.5 ? "acknowledged" : "resolved");
}
