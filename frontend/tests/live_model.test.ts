import { afterEach, describe, expect, it, vi } from "vitest";
import { emptyLiveData } from "../src/data/live_data";
import { detection, feed, type Detection } from "../src/lib/shapes";
import { noChoice } from "../src/data/view_state";
import type { News } from "../src/data/live_session";
import { LiveModel } from "../src/views/live/model";

const NOW = 10_000_000;
const FEED = feed({ name: "yard", crs: "planar", time: "ms", wall_clock: true });
const BORDER = { id: 1, feed: "yard", name: "Gate", family: "border", specification: {} };
const RULES = { id: 2, feed: "yard", name: "Who moves", family: "calculus", specification: {} };

/** A server that answers by the beginning of the path; `asked` has the requests. */
function server(answers: Record<string, unknown>): string[] {
  const asked: string[] = [];
  vi.stubGlobal("location", new URL("http://localhost/"));
  vi.stubGlobal("fetch", (path: string) => {
    asked.push(path.replace("/api/v1/", ""));
    const found = Object.entries(answers).find(([beginning]) => path.startsWith(`/api/v1/${beginning}`));
    return Promise.resolve(
      found === undefined ? new Response("{}", { status: 404 }) : new Response(JSON.stringify(found[1]), { status: 200 }),
    );
  });
  return asked;
}

afterEach(() => vi.unstubAllGlobals());

const row = (id: string, query: number, start: number, end: number | null, weight = 1): Detection =>
  detection({ id, query, kind: "moving", entities: ["a"], value: "true", start, end, weight, detected_at: NOW });
const news = (change: Partial<News>): News => ({ isSnapshot: false, changed: [], removed: [], alerts: [], queries: [], ...change });

/** As a session does: the rows are among the data when the model is notified. */
function deliver(model: LiveModel, rows: Detection[]): void {
  for (const one of rows) model.data.detections.set(one.id, one);
  model.take(news({ changed: rows }));
}

async function loaded(answers: Record<string, unknown>): Promise<{ model: LiveModel; asked: string[] }> {
  const asked = server({ "queries/?feed": { results: [BORDER], next: null }, "regions/": { results: [], next: null }, ...answers });
  const data = emptyLiveData("yard");
  data.now = NOW;
  const model = new LiveModel(FEED, "UTC", noChoice("yard"), data);
  await model.load();
  model.take(news({ isSnapshot: true }));
  asked.length = 0;
  return { model, asked };
}

describe("queries that were registered since the page was opened", () => {
  it("are requested once, with their first answer, and their answers are drawn under them", async () => {
    const { model, asked } = await loaded({ "queries/?id=2": { results: [RULES], next: null } });
    deliver(model, [row("x", 2, 5, 9), row("y", 1, 5, 9)]);
    expect([model.hasUnknown, model.queryName("2")]).toEqual([true, "Query 2"]);
    expect(await model.fetchUnknown()).toBe(true);
    expect([model.queryName("2"), model.hasUnknown, asked]).toEqual(["Who moves", false, ["queries/?id=2"]]);
    expect(model.intervals.of("2").lanes).toEqual(["moving(a)"]);
  });

  it("are not requested again if they were removed or are hidden", async () => {
    const { model, asked } = await loaded({ "queries/?id=3": { results: [], next: null } });
    for (const id of ["x", "y"]) {
      deliver(model, [row(id, 3, 5, 9)]);
      if (model.hasUnknown) expect(await model.fetchUnknown()).toBe(false);
    }
    expect(asked).toEqual(["queries/?id=3"]);
  });
});

describe("queries that were hidden from the reader", () => {
  it("are requested again when a change of theirs is shown", async () => {
    const { model } = await loaded({ "queries/?id=2": { results: [], next: null } });
    deliver(model, [row("x", 2, 5, 9)]);
    await model.fetchUnknown();
    server({ "queries/?id=2": { results: [RULES], next: null } });
    model.take(news({ queries: ["2"] }));
    expect([await model.fetchUnknown(), model.queryName("2")]).toEqual([true, "Who moves"]);
  });
});

describe("queries that are edited or switched off while the page is open", () => {
  it("end open answers where the job stopped running them, stays too, and continue when they run again", async () => {
    const { model } = await loaded({ "queries/?id=1": { results: [{ ...BORDER, enabled: false, left_at: 500 }], next: null } });
    deliver(model, [{ ...row("i", 1, 100, 100), kind: "in" }, row("o", 1, 300, null)]);
    const shown = (): unknown[] => model.intervals.of("1").intervals.map((one) => [one.key, one.end, one.isCut]);
    expect(shown()).toEqual([
      ["i", null, false],
      ["o", null, false],
    ]);
    model.take(news({ queries: ["1"] }));
    expect([model.hasUnknown, await model.fetchUnknown(), model.hasUnknown]).toEqual([true, true, false]);
    expect([shown(), model.intervals.of("1").openCount]).toEqual([
      [
        ["i", 500, true],
        ["o", 500, true],
      ],
      0,
    ]);
    server({ "queries/?id=1": { results: [BORDER], next: null } });
    model.take(news({ queries: ["1"] }));
    await model.fetchUnknown();
    expect(model.intervals.of("1").openCount).toBe(2);
  });

  it("show only the answers of the newest version", async () => {
    const { model } = await loaded({ "queries/?id=1": { results: [{ ...BORDER, version: 2 }], next: null } });
    deliver(model, [row("old", 1, 100, null)]);
    deliver(model, [{ ...row("new", 1, 100, 400), version: 2 }]);
    expect([model.intervals.of("1").intervals.map((one) => one.key), model.hasUnknown]).toEqual([["old"], true]);
    await model.fetchUnknown();
    expect([model.intervals.of("1").intervals.map((one) => one.key), model.queries.length]).toEqual([["new"], 1]);
  });
});

describe("retracted answers", () => {
  it("are shown after a reload up to the retraction, unless they hold again", async () => {
    const answers = {
      "detections/": { results: [row("gone", 1, 100, 200, 0), row("open", 1, 300, null, 0), row("back", 1, 400, 500, 0)], next: null },
    };
    const { model, asked } = await loaded(answers);
    deliver(model, [row("back", 1, 400, 500)]);
    await model.loading.loadRetracted(model.window()[0]);
    const shown = model.intervals.of("1").intervals.map((one) => [one.key, one.end, one.isRetracted]);
    expect(shown).toEqual([
      ["gone", 200, true],
      ["open", NOW, true],
      ["back", 500, false],
    ]);
    expect(asked[0]).toContain("withdrawn=true");
  });

  it("are requested once for each period, and again after the connection was lost", async () => {
    const { model, asked } = await loaded({ "detections/": { results: [], next: null } });
    await model.loading.loadRetracted(5000);
    await model.loading.loadRetracted(6000);
    await model.loading.loadRetracted(1000);
    expect(asked.map((path) => new URLSearchParams(path.split("?")[1])).map((at) => [at.get("from"), at.get("to")])).toEqual([
      ["5000", null],
      ["1000", "5000"],
    ]);
    model.take(news({ isSnapshot: true }));
    await model.loading.loadRetracted(5000);
    expect(asked.length).toBe(3);
  });

  it("stay visible after a new snapshot, with what they were", async () => {
    const { model } = await loaded({});
    deliver(model, [row("x", 1, 100, 200)]);
    model.data.detections.delete("x");
    model.take(news({ removed: ["x"] }));
    model.take(news({ isSnapshot: true }));
    const found = model.intervals.find("x");
    expect([found?.isRetracted, found === null ? [] : model.detections(found).map((one) => one.id)]).toEqual([true, ["x"]]);
  });
});

describe("the specification of the version that gave an answer", () => {
  const OLD = { version: 1, specification: { family: "border" }, sentence: "Reports trucks.", unchanged: false };

  it("is known for the version that the page shows", async () => {
    const { model, asked } = await loaded({});
    expect([model.rulesOf("1", 1, () => undefined), asked]).toEqual([{ version: 1, specification: {}, sentence: "", unchanged: true }, []]);
  });

  it("is requested once for another version, with a notification on arrival", async () => {
    const { model, asked } = await loaded({ "queries/1/versions/3": OLD });
    await new Promise<void>((come) => expect([model.rulesOf("1", 3, come), model.rulesOf("1", 3, come)]).toEqual(["coming", "coming"]));
    expect([model.rulesOf("1", 3, () => undefined), asked]).toEqual([OLD, ["queries/1/versions/3"]]);
  });

  it("is not requested for a removed query", async () => {
    const { model, asked } = await loaded({});
    expect([model.rulesOf("7", 1, () => undefined), asked]).toEqual([null, []]);
  });
});

describe("a file of answers", () => {
  const addressOf = async (queries: number, isHidden: (at: number) => boolean): Promise<URLSearchParams> => {
    const { model } = await loaded({});
    const first = model.queries[0]!;
    model.queries.splice(0, 1, ...Array.from({ length: queries }, (_, i) => ({ ...first, id: String(i) })));
    model.state.hidden = [...model.queries.map(({ id }) => id).filter((_, i) => isHidden(i)), "9999"];
    return new URLSearchParams(model.answersFile("csv", [0, 9]).split("?")[1]);
  };

  it("names the queries that are shown or those that are hidden, whichever are fewer", async () => {
    const few = await addressOf(2_000, (i) => i > 1);
    expect([few.getAll("query"), few.getAll("without")]).toEqual([["0", "1"], []]);
    const most = await addressOf(2_000, (i) => i < 2);
    expect([most.getAll("query"), most.getAll("without")]).toEqual([[], ["0", "1"]]);
    const all = await addressOf(2_000, () => false);
    expect([all.getAll("query"), all.getAll("without")]).toEqual([[], []]);
  });

  it("is refused with the reason if no address has room for it, or nothing is shown", async () => {
    await expect(addressOf(3_000, (i) => i % 2 === 0)).rejects.toThrow("1,000");
    await expect(addressOf(3, () => true)).rejects.toThrow("All queries are hidden");
  });
});

describe("a recording that has ended", () => {
  const factorOf = (change: Record<string, unknown>, wall: number, state = noChoice("yard")): number => {
    const data = emptyLiveData("yard");
    data.now = NOW;
    const model = new LiveModel(feed({ name: "yard", crs: "planar", time: "ms", ...change }), "UTC", state, data);
    model.take(news({ isSnapshot: true }));
    return model.recordingFactor(NOW - 9_000_000, wall);
  };
  const later = NOW + 30 * 86_400_000;

  it("is shown as a whole", () => {
    expect(factorOf({}, later) * 900_000).toBeCloseTo(9_000_000 * 1.06);
    const theSameDay = NOW + 2 * 3_600_000;
    expect(factorOf({}, theSameDay)).toBeGreaterThan(1);
  });

  it("is not assumed for feeds that are live, have ticks, or a chosen span", () => {
    expect(factorOf({}, NOW + 60_000)).toBe(1);
    expect(factorOf({ wall_clock: true }, later)).toBe(1);
    expect(factorOf({ time: "ticks" }, later)).toBe(1);
    expect(factorOf({}, later, { ...noChoice("yard"), span: 5000 })).toBe(1);
  });
});

describe("a step to an answer of which only the count is loaded", () => {
  const page = (...results: Detection[]): unknown => ({ results, next: null });

  it("loads the next answer of the queries that are shown", async () => {
    const { model, asked } = await loaded({ "detections/": page(row("z", 1, 700, 800)) });
    model.loading.coverage.clear();
    expect(model.loading.knows(5, 700)).toBe(false);
    await model.loadBeside(5.5, 1);
    const after = "ff".repeat(16);
    expect(asked).toEqual([`detections/?feed=yard&order=start&cursor=5.${after}&page_size=100`]);
    expect(model.intervals.find("z")?.start).toBe(700);
    model.state.hidden = ["1"];
    model.queries.push({ ...model.queries[0]!, id: "2" });
    model.chooseEntities(["a", "b"]);
    asked.length = 0;
    await model.loadBeside(700, -1);
    expect(asked).toEqual(
      ["a", "b"].map((entity) => `detections/?feed=yard&entity=${entity}&order=-start&cursor=700.&page_size=100&query=2`),
    );
  });

  it("loads the end of a stay if only its entry is known", async () => {
    const entry = detection({ ...row("i", 1, 100, 100), kind: "in" });
    const exit = detection({ ...row("o", 1, 900, 900), kind: "out" });
    const { model, asked } = await loaded({ "detections/": page(exit) });
    model.loading.coverage.clear();
    model.remember(entry);
    const open = model.intervals.find("i")!;
    expect(open.end).toBeNull();
    await model.loading.loadEnd(open);
    expect(asked).toEqual([`detections/?feed=yard&entity=a&order=start&cursor=100.${"ff".repeat(16)}&page_size=100&query=1`]);
    const closed = model.intervals.find("i")!;
    expect(closed.end).toBe(900);
    await model.loading.loadEnd(closed);
    expect(asked).toHaveLength(1);
  });
});

describe("a query that is not listed any more", () => {
  const ANSWER = { ...row("x", 7, 5, 9), query: 7, query_name: "Gate", sentence: "Reports what enters." };
  const GONE = { name: "Gate", sentence: "Reports what enters." };

  it("has the name of its answer, which is requested once", async () => {
    const { model, asked } = await loaded({ "detections/x/": ANSWER });
    const answer = { ...row("x", 7, 5, 9), version: 1 };
    await new Promise<void>((come) => expect([model.goneQuery(answer, come), model.queryName("7")]).toEqual(["coming", "Query 7"]));
    expect([model.goneQuery(answer, () => undefined), model.queryName("7")]).toEqual([GONE, "Gate"]);
    expect(asked).toEqual(["detections/x/?feed=yard"]);
  });

  it("has the sentence of the version of each answer", async () => {
    const { model } = await loaded({ "detections/x/": ANSWER, "detections/y/": { ...ANSWER, sentence: "Reports what leaves." } });
    const [old, newer] = [
      { ...row("x", 7, 5, 9), version: 1 },
      { ...row("y", 7, 15, 19), version: 2 },
    ];
    for (const answer of [old, newer])
      await new Promise<void>((come) => {
        expect(model.goneQuery(answer, come)).toBe("coming");
        expect(model.goneQuery(answer, come)).toBe("coming");
      });
    const shown = (answer: Detection): unknown => model.goneQuery(answer, () => undefined);
    expect([shown(old), shown(newer)]).toEqual([GONE, { name: "Gate", sentence: "Reports what leaves." }]);
  });

  it("stays a number for readers who may not see it", async () => {
    const { model, asked } = await loaded({});
    const answer = row("x", 7, 5, 9);
    await new Promise<void>((come) => expect(model.goneQuery(answer, come)).toBe("coming"));
    expect([model.goneQuery(answer, () => undefined), model.queryName("7"), asked.length]).toEqual([null, "Query 7", 1]);
  });
});
