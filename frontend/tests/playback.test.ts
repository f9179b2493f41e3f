import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Playback } from "../src/clock/playback";
import { EntitiesData, TRAIL } from "../src/data/entities_data";
import { SILENT_PERIODS } from "../src/data/silence";

type Sample = [entity: string, t: number, x: number];

/** As the server answers (docs/api.md): header, then t, x, y and entity. */
function encoded(from: number, to: number, samples: readonly Sample[]): ArrayBuffer {
  const entities = [...new Set(samples.map(([entity]) => entity))];
  let text = JSON.stringify({ from, to, begin: samples[0]?.[1] ?? null, entities, count: samples.length });
  while ((4 + text.length) % 8 !== 0) text += " ";
  const head = 4 + text.length;
  const data = new ArrayBuffer(head + samples.length * 28);
  new DataView(data).setUint32(0, text.length, true);
  new Uint8Array(data, 4).set(new TextEncoder().encode(text));
  samples.forEach(([entity, t, x], n) => {
    new Float64Array(data, head, samples.length)[n] = t;
    new Float64Array(data, head + 8 * samples.length, samples.length)[n] = x;
    new Float64Array(data, head + 16 * samples.length, samples.length)[n] = -x;
    new Int32Array(data, head + 24 * samples.length, samples.length)[n] = entities.indexOf(entity);
  });
  return data;
}

/**
 * A server with these samples, which cuts longer spans short; `asked` are
 * the spans it was asked for.
 */
function server(samples: readonly Sample[], longest = Infinity): [number, number][] {
  const asked: [number, number][] = [];
  vi.stubGlobal("location", new URL("http://localhost/"));
  vi.stubGlobal("fetch", (path: string) => {
    const at = new URL(path, "http://localhost/").searchParams;
    const [from, to] = [Number(at.get("from")), Number(at.get("to"))];
    asked.push([from, to]);
    const reached = Math.min(to, from + longest);
    return Promise.resolve(
      new Response(
        encoded(
          from,
          reached,
          samples.filter(([, t]) => t < reached),
        ),
        { status: 200 },
      ),
    );
  });
  return asked;
}

afterEach(() => vi.unstubAllGlobals());

const wanted = (samples: readonly Sample[], t: number): Record<string, number> =>
  Object.fromEntries(samples.filter((one) => one[1] <= t).map(([entity, , x]) => [entity, x]));
const shown = (entities: EntitiesData): Record<string, number> => Object.fromEntries(entities.ids.map((id, i) => [id, entities.px[i]!]));
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** Of each entity the trail that the map draws, and its heading. */
const ways = (entities: EntitiesData): Record<string, unknown> =>
  Object.fromEntries(
    entities.ids.map((id, i) => {
      const points: number[] = [];
      entities.eachTrailPoint(i, (x) => points.push(x));
      return [id, { points, heading: entities.heading[i], isMoving: entities.isMoving(i) }];
    }),
  );

/** The samples of an entity from the gaps between its reports, before 59 s. */
function track(entity: string, reports: readonly [gap: number, x: number][]): Sample[] {
  let t = 0;
  return reports.map(([gap, x]): Sample => [entity, (t += gap), x]).filter((sample) => sample[1] < 59_000);
}

async function shows(playback: Playback, t: number, rate: number): Promise<void> {
  playback.show(t, rate);
  await settled();
  playback.show(t, rate);
  expect(playback.isShown(t)).toBe(true);
}

function made(): { entities: EntitiesData; playback: Playback; faults: unknown[] } {
  const entities = new EntitiesData((x, y) => [x, y]);
  const faults: unknown[] = [];
  return {
    entities,
    faults,
    playback: new Playback({ feed: "yard", unitsPerMs: 1, entities, onFault: (error) => faults.push(error), onBegin: () => undefined }),
  };
}

describe("playback", () => {
  it("shows the last positions after any steps forwards, backwards and jumps", async () => {
    const sample = fc.tuple(fc.constantFrom("a", "b", "c"), fc.integer({ min: 0, max: 400_000 }), fc.integer({ min: 0, max: 1000 }));
    const step = fc.record({ to: fc.integer({ min: 0, max: 400_000 }), rate: fc.constantFrom(0, 1, 60, 600, -10, -600) });
    await fc.assert(
      fc.asyncProperty(fc.array(sample, { maxLength: 60 }), fc.array(step, { minLength: 1, maxLength: 12 }), async (unsorted, steps) => {
        const samples = unsorted.sort((a, b) => a[1] - b[1]);
        server(samples);
        const { entities, playback, faults } = made();
        for (const { to, rate } of steps) {
          playback.show(to, rate);
          await settled();
          playback.show(to, rate);
          expect(playback.isShown(to)).toBe(true);
          expect(shown(entities)).toEqual(wanted(samples, to));
        }
        expect(faults).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it("shows the same trails backwards as after a jump", async () => {
    // No gap is a silence, whatever interval counts as usual: that is learned again from what a
    // jump puts again, so a trail that starts after a silence may depend on the way.
    const report = fc.tuple(fc.integer({ min: 1000, max: 1000 * SILENT_PERIODS }), fc.integer({ min: 0, max: 9 }));
    const tracks = fc.tuple(
      ...["a", "b", "c"].map((entity) => fc.array(report, { maxLength: 40 }).map((reports) => track(entity, reports))),
    );
    const instants = fc.array(fc.integer({ min: 0, max: 59_000 }), { minLength: 2, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(tracks, instants, async (unsorted, ts) => {
        const samples = unsorted.flat().sort((a, b) => a[1] - b[1]);
        server(samples);
        const [back, jumped] = [made(), made()];
        for (const t of ts.sort((a, b) => b - a)) {
          await shows(back.playback, t, -1);
          jumped.playback.close();
          await shows(jumped.playback, t, 0);
          expect(ways(back.entities)).toEqual(ways(jumped.entities));
        }
      }),
      { numRuns: 200 },
    );
  });

  it("updates only entities that moved when going backwards", async () => {
    const cars = Array.from({ length: 100 }, (_, n) => `car-${n}`);
    server(Array.from({ length: 60 }, (_, second) => cars.map((car): Sample => [car, 1000 * second + 1, second])).flat());
    const { entities, playback } = made();
    await shows(playback, 50_500, -1);
    const put = vi.spyOn(entities, "put");
    playback.show(50_400, -1);
    expect(put).not.toHaveBeenCalled();
    playback.show(49_500, -1);
    expect(shown(entities)["car-7"]).toBe(49);
    // Of the 49 samples of each the last ones: they draw its trail.
    expect(put.mock.calls.length).toBeLessThanOrEqual((TRAIL + 1) * cars.length);
  });

  it("fetches ahead while it plays, so that it never waits", async () => {
    const asked = server([["a", 0, 1]]);
    const { playback } = made();
    playback.show(1_000_000, 60);
    await settled();
    for (let t = 1_000_000; t < 4_000_000; t += 20_000) {
      playback.show(t, 60);
      expect(playback.isShown(t)).toBe(true);
      await settled();
    }
    expect(asked.length).toBeLessThan(12);
  });

  it("has a short span first after a jump", async () => {
    const asked = server([["a", 0, 1]]);
    const { playback } = made();
    playback.show(5_000_000, 600);
    await settled();
    playback.show(5_000_000, 600);
    const lengths = asked.map(([from, to]) => to - from);
    expect(lengths).toEqual([1_500_000, 4_800_000]);
  });

  it.each([600, -600])("goes on at %i times where the server answers a part of a long span", async (rate) => {
    const samples: Sample[] = Array.from({ length: 2000 }, (_, n) => ["a", n * 10_000, n]);
    const asked = server(samples, 900_000);
    const { entities, playback } = made();
    let waits = 0;
    for (let n = 0, t = 10_000_000; n < 200; n++, t += 50 * rate) {
      for (playback.show(t, rate); !playback.isShown(t) && waits < 99; waits++) {
        await settled();
        playback.show(t, rate);
      }
      expect(shown(entities)).toEqual(wanted(samples, t));
      await settled();
    }
    expect(waits).toBeLessThan(6);
    expect(asked.length).toBeLessThan(30);
  });

  it("requests a span once", () => {
    const asked = server([["a", 0, 1]]);
    const { playback } = made();
    for (let frame = 0; frame < 5; frame++) playback.show(1_000_000 + frame, 1);
    expect(asked.length).toBe(1);
  });

  it("passes errors on, and retries at the next frame", async () => {
    const { playback, faults } = made();
    vi.stubGlobal("fetch", () => Promise.resolve(new Response("{}", { status: 503 })));
    playback.show(5, 1);
    await settled();
    await settled();
    expect(faults.length).toBe(1);
    server([["a", 0, 1]]);
    playback.show(5, 1);
    await settled();
    playback.show(5, 1);
    expect(playback.isShown(5)).toBe(true);
  });
});
