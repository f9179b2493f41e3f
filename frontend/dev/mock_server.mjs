// A stand-in for the server while the screens are being made: node dev/mock_server.mjs [port]
import { execFileSync } from "node:child_process";
import { createReadStream, existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import * as world from "./world.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "mock-"));
const TYPES = { ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json", ".woff2": "font/woff2", ".png": "image/png" };
const CSP = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; worker-src 'self' blob:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'";
const { feeds, queries, regions, alerts, history } = world;
const me = { id: 1, name: "analyst", email: "analyst@example.org", time_zone: "Europe/Berlin", superuser: false, teams: [{ id: 1, name: "Harbour watch", role: "operator" }] };
const families = { border: { title: "Crossing a border", kinds: ["in", "out"] }, transition: { title: "Passing or staying", kinds: ["passed", "returned", "stayed_in", "stayed_out"] }, motion: { title: "Motion pattern", kinds: ["match"] }, constraint: { title: "Events close together", kinds: ["match"] }, composite: { title: "Composite event", kinds: ["detection"] }, calculus: { title: "Rules over time", kinds: ["greeting"] } };
const tokens = [{ id: 1, name: "gateway", prefix: "vdt_8fk2", scopes: ["ingest"], created_at: "2026-11-02T10:00:00Z", expires_at: null, last_used_at: "2026-11-21T09:30:00Z" }];
const channels = [{ id: 2, name: "Duty desk", url: "https://hooks.example.org/duty", enabled: true, disabled_reason: "", min_severity: "high", per_minute: 30, all_queries: true, queries: [], failures: 0, last_sent_at: "2026-11-21T09:00:00Z", waiting: 0, ...world.owner }, { id: 3, name: "Harbour master", url: "https://hooks.example.org/harbour", enabled: true, disabled_reason: "", min_severity: "info", per_minute: 30, all_queries: false, queries: [], failures: 0, last_sent_at: null, waiting: 0, ...world.owner }];
const jobs = [{ name: "main", desired_state: "running", observed_state: "running", started_at: new Date(Date.now() - 7.2e6).toISOString(), heartbeat: new Date().toISOString(), restarts: 1, failures: 0, last_error: "", feeds: ["city", "strait", "plaza"], editable: true, events: [{ at: new Date(Date.now() - 7.1e6).toISOString(), kind: "ready", text: "Processing again after 6 s; nothing was lost." }, { at: new Date(Date.now() - 7.2e6).toISOString(), kind: "crashed", text: "The process ended with status -9." }, { at: new Date(Date.now() - 9e6).toISOString(), kind: "started", text: "Asked for by analyst." }] }];
const status = (feed) => {
  const t = world.clock(feed.name);
  const processed = Math.floor((Date.now() - 1.7e12) / 37);
  return { ...feed, counters: { received: processed + 5321 + 213 + 87 + 640, processed, duplicates: 5321, late: 213, dead: 87, waiting: 640 }, head: { seq: processed, watermark: t - feed.lateness, max_t: t, outbox_seq: sequence[feed.name], batch_ms: 70 + Math.random() * 40, rows_per_s: 880 + Math.random() * 90, query_version: 12, catching_up: {}, updated_at: new Date().toISOString(), job: "main" } };
};
const sequence = { city: 100, strait: 100, plaza: 100 };
const outbox = { city: [], strait: [], plaza: [] };
const deadLetters = Array.from({ length: 9 }, (_, i) => ({ id: i + 1, reason: ["bad_coordinate", "missing_entity", "late"][i % 3], detail: ["x is 190.2: outside -180..180", "entity is empty", "4.1 s behind the clock, 2 s allowed"][i % 3], row: { event: "position", entity: i % 3 === 1 ? null : `car-${i}`, t: Date.now() - i * 9000, x: 190.2, y: 48.1 }, line: 40 + i, source: "http:gateway", received_at: new Date(Date.now() - i * 9000).toISOString() }));

const page = (results) => ({ count: results.length, next: null, previous: null, results });
const tracksOf = (entities, from, to) => ({ complete: true, tracks: entities.map((entity) => { const here = feeds.flatMap((f) => world.positions(f.name)).find((p) => p[0] === entity); if (!here) return { entity, points: [] }; const [, x, y] = here; const planar = x > 180 || y > 90; const k = planar ? 4000 : 1; return { entity, points: Array.from({ length: 40 }, (_, i) => [Math.round(from + ((to - from) * i) / 39), x - (39 - i) * 0.00022 * k, y + Math.sin(i / 5) * 0.0006 * k]) }; }) });

function api(method, path, search, body) {
  const parts = path.split("/").filter(Boolean);
  const [kind, key, action] = parts;
  if (kind === "me") return me;
  if (kind === "feeds") {
    if (!key) return page(feeds.map(status));
    if (!action) return status(feeds.find((f) => f.name === key));
    if (action === "tracks") return tracksOf(search.getAll("entity"), Number(search.get("from") ?? world.clock(key) - 600000), Number(search.get("to") ?? world.clock(key)));
    if (action === "positions") return { t: world.clock(key), entities: world.positions(key) };
    if (action === "entities") return { entities: world.positions(key).map((p) => p[0]).filter((id) => id.includes(search.get("search") ?? "")).slice(0, 20) };
    if (action === "dead-letters") return { next: null, previous: null, results: deadLetters };
    if (action === "histogram") return { column: "speed", rows: 5000, nulls: 0, min: 0, max: 31, edges: Array.from({ length: 41 }, (_, i) => (i * 31) / 40), counts: Array.from({ length: 40 }, (_, i) => Math.round(400 * Math.exp(-(((i - 18) / 8) ** 2)))) };
  }
  if (kind === "regions") {
    if (key === "import") return { created: [{ name: "imported 1", geometry: regions[0].geometry, bbox: null }], refused: [] };
    if (!key && method === "POST") { const row = { id: 900 + regions.length, used_by: [], bbox: null, tags: [], ...world.owner, ...body }; regions.push(row); return row; }
    if (!key) return page(regions.filter((r) => !search.get("feed") || r.feed === search.get("feed")));
    const row = regions.find((r) => String(r.id) === key);
    if (method === "PATCH") Object.assign(row, body);
    if (method === "DELETE") regions.splice(regions.indexOf(row), 1);
    return row;
  }
  if (kind === "queries") {
    if (key === "bulk") { const at = (n) => { const [x, y] = [11.35 + (n % 40) * 0.012, 48.05 + Math.floor(n / 40) * 0.006]; return { type: "Polygon", coordinates: [[[x, y], [x + 0.006, y], [x + 0.006, y + 0.003], [x, y + 0.003], [x, y]]] }; }; return { queries: Array.from({ length: 996 }, (_, n) => ({ row: n + 5, name: `Cell ${n + 5}`, id: null, geometry: at(n) })), existing: [{ row: 1, name: "Cell 1", id: 4, same: true }, { row: 2, name: "Cell 2", id: 5, same: false }], refused: [{ row: 3, name: "Cell 3", faults: [{ pointer: "/geometry", message: "The ring crosses itself near (11.52, 48.13)." }] }, { row: 4, name: "Cell 4", faults: [{ pointer: "/geometry", message: "The feature has no geometry." }] }], registered: 996, stored: false, sentence: null }; }
    if (key === "check") { const faults = []; const s = body.specification; if (!s.region && !s.ranges) faults.push({ pointer: "/region", message: "draw or choose a region" }); if (s.family === "transition" && !s.within) faults.push({ pointer: "/within", message: "how long? a duration such as PT3M is expected" }); return { faults, sentence: faults.length ? null : s.family === "border" ? "Reports when something enters or leaves the drawn region." : `When something enters the region: tells whether it leaves again within ${s.within}, or stays.`, kinds: s.family === "border" ? ["in", "out"] : s.types ?? families.transition.kinds }; }
    if (key === "preview") { const rows = history[body.feed].filter((d) => queries.find((q) => q.id === d.query).family === body.specification.family).slice(-60); const to = world.clock(body.feed); return { from: to - 600000, to, rows: 121400, truncated: false, seconds: 0.82, total: rows.length, answers: rows }; }
    if (!key && method === "POST") { const row = { id: queries.length + 1, version: 1, description: "", enabled: true, kinds: families[body.specification.family].kinds, family: body.specification.family, sentence: "Reports when something enters or leaves.", regions: [], ...world.owner, ...body }; queries.push(row); return row; }
    if (!key) return page(queries.filter((q) => !search.get("feed") || q.feed === search.get("feed")));
    const row = queries.find((q) => String(q.id) === key);
    if (action === "progress") { const [entity, t] = [search.get("entity"), world.clock(row.feed)]; const steps = row.specification.predicates.map((_, i) => (i < 3 ? { t: t - (3 - i) * 70_000, x: 0, y: 0 } : null)); return { at: t, rows: 900, total: 1, entities: [{ entity, done: 3, of: steps.length, matches: false, score: null, steps }] }; }
    if (action === "versions") return [{ version: 1, specification: row.specification, sentence: row.sentence, created_at: "2026-11-21T08:00:00Z", created_by: "analyst", current: true }];
    if (action === "shapes") { const name = JSON.stringify(row.specification).match(/"region":"([^"]+)"/); return { shapes: regions.filter((r) => r.feed === row.feed && name && r.name === name[1]).map((r) => r.geometry) }; }
    if (method === "PATCH") Object.assign(row, body, { version: row.version + (body.specification ? 1 : 0) });
    if (method === "DELETE") queries.splice(queries.indexOf(row), 1);
    return row;
  }
  if (kind === "detections") {
    if (key) { const d = Object.values(history).flat().find((item) => item.id === key); const q = queries.find((item) => item.id === d.query); return { ...d, query_name: q.name, sentence: q.sentence, feed: q.feed, tracks: tracksOf(d.entities, d.start - 60000, (d.end ?? d.start) + 60000).tracks }; }
    const isWanted = (d) => (search.get("withdrawn") === "true") === d.weight <= 0;
    return { next: null, previous: null, results: history[search.get("feed") ?? "city"].filter(isWanted).slice(-200).reverse() };
  }
  if (kind === "alerts") {
    if (key === "count") return { count: alerts.filter((a) => search.getAll("state").includes(a.state)).length };
    if (key === "bulk") { const changed = alerts.filter((a) => body.ids.map(String).includes(String(a.id))); for (const a of changed) { a.state = body.action === "resolve" ? "resolved" : "acknowledged"; a.acknowledged_by = me.name; publish(a.feed, [], [a]); } return { changed: changed.map((a) => a.id) }; }
    if (!key) return { next: null, previous: null, results: alerts.filter((a) => (!search.getAll("state").length || search.getAll("state").includes(a.state)) && (!search.get("severity") || a.severity === search.get("severity")) && (!search.get("feed") || a.feed === search.get("feed"))).reverse() };
    const row = alerts.find((a) => String(a.id) === key);
    if (action === "comments") return { id: 5, author: me.name, text: body.text, at: new Date().toISOString() };
    if (action) { row.state = action === "resolve" ? "resolved" : "acknowledged"; row.acknowledged_by = me.name; row.acknowledged_at = new Date().toISOString(); publish(row.feed, [], [row]); return row; }
    const d = Object.values(history).flat().find((item) => item.id === row.detection);
    return { ...row, comments: [{ id: 1, author: "mara", text: "Called the attendant, checking the level.", at: new Date(Date.now() - 400000).toISOString() }], sentence: queries.find((q) => q.id === row.query).sentence, evidence: { detection: d ?? null, closing: null, tracks: tracksOf(row.entities, row.start - 60000, (row.end ?? row.start) + 60000).tracks }, deliveries: [{ channel: "Duty desk", sent_at: new Date(Date.now() - 380000).toISOString(), attempts: 1, error: "" }] };
  }
  if (kind === "jobs") { if (action) { jobs[0].desired_state = action === "stop" ? "stopped" : "running"; jobs[0].observed_state = action === "stop" ? "stopped" : "starting"; return jobs[0]; } return key ? jobs[0] : page(jobs); }
  if (kind === "tokens") { if (method === "POST") return { id: 9, prefix: "vdt_q1zz", created_at: new Date().toISOString(), expires_at: null, last_used_at: null, ...body, token: "vdt_q1zz7Hn2Jk83LmPqRsTuVwXyZ0123456789abcd" }; return tokens; }
  if (kind === "channels") { if (action === "test") return { ok: true, status: 200, error: "" }; if (method === "POST") { const row = { ...channels[0], ...body, id: 10, secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }; channels.push(row); return row; } return page(channels); }
  return null;
}

const PAGES = [[/^\/$/, "pages/live.html"], [/^\/queries\/$/, "pages/queries.html"], [/^\/queries\/new$/, "pages/query.html"], [/^\/queries\/(\d+)$/, "pages/query.html"], [/^\/alerts\/(\d*)$/, "pages/alerts.html"], [/^\/regions\/$/, "pages/regions.html"], [/^\/feeds\/$/, "pages/feeds.html"], [/^\/account\/$/, "pages/account.html"], [/^\/login\/$/, "pages/login.html"]];
let renders = 0;
function renderPage(path, theme) {
  const found = PAGES.find(([pattern]) => pattern.test(path));
  const id = found && found[0].exec(path)[1];
  const values = { map_settings: { base_maps: [] }, page_data: { me, feeds, families, query: path.startsWith("/queries/") && id ? queries.find((q) => String(q.id) === id) : null, alert: path.startsWith("/alerts/") && id ? Number(id) : null, jobs, tokens, teams: me.teams }, next: "/", status: 404, message: "There is nothing here, or it is not shared with you." };
  if (path === "/login/" || !found) delete values.page_data;
  const file = join(folder, `${renders++}.json`);
  writeFileSync(file, JSON.stringify(values));
  return execFileSync(join(ROOT, ".venv/bin/python"), [join(ROOT, "frontend/dev/render.py"), found ? found[1] : "error.html", file, path, theme], { encoding: "utf8" });
}

const PLAN = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 384 288" width="1536" height="1152"><rect width="384" height="288" fill="#e8e6df"/><path d="M0 0h384v288H0z" fill="none" stroke="#9aa3a8" stroke-width="6"/><circle cx="190" cy="148" r="30" fill="#cfe0e8" stroke="#8fa7b3" stroke-width="2"/><path d="M24 24h70v40H24zM290 24h70v60h-70zM24 220h110v44H24z" fill="#d6d2c6" stroke="#b3ada0"/></svg>';
const server = createServer(async (request, response) => {
  const url = new URL(request.url, "http://localhost");
  const theme = /theme=(\w+)/.exec(request.headers.cookie ?? "")?.[1] ?? "";
  try {
    if (url.pathname === "/mock/plan.svg") return response.writeHead(200, { "Content-Type": "image/svg+xml" }).end(PLAN);
    if (url.pathname === "/mock/register") { world.addForeignQuery(); const made = queries.at(-1); const d = world.makeDetection(made.id, "in", [world.anyone("city").id], Date.now(), Date.now()); history.city.push(d); publish("city", [d], []); return response.writeHead(204).end(); }
    if (url.pathname === "/mock/drop") { for (const socket of wss.clients) socket.terminate(); return response.writeHead(204).end(); }
    if (url.pathname.startsWith("/static/")) {
      const file = join(ROOT, url.pathname.replace(/\.\./g, ""));
      if (!existsSync(file)) return response.writeHead(404).end();
      response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream" });
      return createReadStream(file).pipe(response);
    }
    if (url.pathname.startsWith("/api/v1/")) {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString();
      const body = text.startsWith("{") ? JSON.parse(text) : {};
      const answer = api(request.method, url.pathname.slice(8), url.searchParams, body);
      return response.writeHead(answer === undefined ? 404 : 200, { "Content-Type": "application/json" }).end(JSON.stringify(answer ?? { faults: [{ pointer: "", message: "not found" }] }));
    }
    response.writeHead(200, { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": CSP }).end(renderPage(url.pathname, theme));
  } catch (error) {
    console.error(error);
    response.writeHead(500).end(String(error));
  }
});

const wss = new WebSocketServer({ server, path: "/ws/live/" });
const send = (socket, frame) => socket.readyState === 1 && socket.send(JSON.stringify(frame));
function publish(feed, detections, changed) {
  const seq = ++sequence[feed];
  outbox[feed].push({ type: "changes", feed, from: seq, seq, detections, alerts: changed });
  for (const socket of wss.clients) if (socket.feed === feed) send(socket, outbox[feed].at(-1));
}
wss.on("connection", (socket) => socket.on("message", (text) => {
  const message = JSON.parse(text);
  if (message.type === "unsubscribe") socket.feed = null;
  if (message.type !== "subscribe") return;
  socket.feed = message.feed;
  const feed = message.feed;
  if (message.since !== null && message.since >= 100) {
    const missed = outbox[feed].filter((f) => f.seq > message.since);
    send(socket, { type: "changes", feed, from: message.since + 1, seq: sequence[feed], detections: missed.flatMap((f) => f.detections), alerts: missed.flatMap((f) => f.alerts) });
  } else send(socket, { type: "snapshot", feed, seq: sequence[feed], detections: history[feed], alerts: alerts.filter((a) => a.feed === feed), positions: world.positions(feed), clock: world.clock(feed) });
}));
setInterval(() => {
  for (const { name } of feeds) {
    world.step(name);
    for (const socket of wss.clients) if (socket.feed === name) send(socket, { type: "positions", feed: name, t: world.clock(name), entities: world.positions(name) });
  }
}, 500);
setInterval(() => {
  for (const { name } of feeds) {
    const open = new Map();
    for (const d of history[name]) { const key = d.query + d.entities[0]; if (d.kind === "in") open.set(key, d); if (d.kind === "out") open.delete(key); }
    const rows = [];
    const now = world.clock(name);
    const q = queries.filter((item) => item.feed === name && item.family === "border");
    if (world.random() < 0.5 && open.size) { const d = [...open.values()][0]; rows.push(world.makeDetection(d.query, "out", d.entities, now, now)); }
    const query = q[Math.floor(world.random() * q.length)];
    const who = world.anyone(name).id;
    if (query && !open.has(query.id + who)) rows.push(world.makeDetection(query.id, "in", [who], now, now));
    history[name].push(...rows);
    const opened = rows.filter((d) => d.kind === "in" && queries.find((item) => item.id === d.query).alert_kinds.includes("in") && world.random() < 0.3).map((d) => world.makeAlert(d));
    if (rows.length) publish(name, rows, opened);
    for (const socket of wss.clients) if (socket.feed === name) send(socket, { type: "status", feed: name, watermark: now - 2000, max_t: now, rate: 912.4, job: "running" });
  }
}, 1500);
// RATE crossings a second in ten frames, and now and then a fluent that is revised or retracted.
const rate = Number(process.env.RATE ?? 0);
const border = queries.filter((item) => item.feed === "city" && item.family === "border");
const inside = new Set();
if (rate > 0) setInterval(() => {
  const now = world.clock("city");
  const rows = Array.from({ length: Math.round(rate / 10) }, () => {
    const query = border[Math.floor(world.random() * border.length)];
    const who = `car-${1 + Math.floor(world.random() * Math.min(2000, Number(process.env.CARS ?? 1200)))}`;
    const key = query.id + who;
    const kind = inside.delete(key) ? "out" : (inside.add(key), "in");
    return world.makeDetection(query.id, kind, [who], now, now);
  });
  publish("city", rows, []);
}, 100);
setInterval(() => {
  const rows = history.plaza.filter((d) => d.kind === "moving" && d.end !== null && d.weight > 0);
  const one = rows[Math.floor(world.random() * rows.length)];
  if (!one) return;
  if (world.random() < 0.3) one.weight = 0;
  else one.end = Math.max(one.start + 20, one.end - 60);
  publish("plaza", [{ ...one, weight: one.weight || -1 }], []);
}, 4000);
server.listen(Number(process.argv[2] ?? 8765), "127.0.0.1", () => console.log("mock server at http://127.0.0.1:" + server.address().port));
