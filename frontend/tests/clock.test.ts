import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Clock } from "../src/clock/clock";
import { parseWhen } from "../src/clock/when";

const PRESENT = Date.UTC(2026, 10, 22, 12, 0, 0);

function made({ span = 900_000 } = {}) {
  const world = { present: PRESENT, wall: 0, changes: 0 };
  const clock = new Clock(
    { present: () => world.present, wall: () => world.wall, unitsPerMs: 1, leastSpan: 200 },
    span,
    () => (world.changes += 1),
  );
  return { clock, world };
}

describe("the clock", () => {
  it("follows the present while it is live, with little of the window after it", () => {
    const { clock, world } = made();
    world.present += 5000;
    expect(clock.now()).toBe(PRESENT + 5000);
    const [t0, t1] = clock.window();
    expect(t1 - t0).toBeCloseTo(900_000);
    expect((t1 - clock.now()) / 900_000).toBeCloseTo(0.04);
  });

  it("stays live when the window is zoomed, and never shows a greater share of the future", () => {
    const { clock } = made();
    for (let n = 0; n < 5; n++) clock.zoom(1.43, PRESENT - 500_000);
    const [t0, t1] = clock.window();
    expect(clock.isLive).toBe(true);
    expect((t1 - clock.now()) / (t1 - t0)).toBeCloseTo(0.04);
  });

  it("stops instant and window when it is paused, while the present advances", () => {
    const { clock, world } = made();
    clock.pause();
    const before = [clock.now(), ...clock.window()];
    world.present += 60_000;
    world.wall += 60_000;
    expect([clock.now(), ...clock.window()]).toEqual(before);
    clock.goLive();
    expect(clock.now()).toBe(PRESENT + 60_000);
  });

  it("moves the instant with the window when it is dragged, and is live again when it is dragged to the present", () => {
    const { clock } = made();
    clock.pan(-120_000);
    expect([clock.isLive, clock.now()]).toEqual([false, PRESENT - 120_000]);
    clock.pan(121_000);
    expect([clock.isLive, clock.now()]).toEqual([true, PRESENT]);
  });

  it("plays forward at its rate until the present, then it is live", () => {
    const { clock, world } = made();
    clock.seek(PRESENT - 60_000);
    clock.play(60);
    world.wall += 500;
    clock.tick();
    expect([clock.now(), clock.isPlaying]).toEqual([PRESENT - 30_000, true]);
    world.wall += 600;
    clock.tick();
    expect(clock.isLive).toBe(true);
  });

  it("plays backwards until the beginning of the history, then it pauses", () => {
    const { clock, world } = made();
    clock.earliest = PRESENT - 10_000;
    clock.play(-10);
    world.wall += 600;
    clock.tick();
    expect(clock.now()).toBe(PRESENT - 6000);
    world.wall += 600;
    clock.tick();
    expect([clock.now(), clock.isPlaying, clock.isLive]).toEqual([PRESENT - 10_000, false, false]);
  });

  it("keeps the window when an instant in it is chosen, and moves it to any other instant", () => {
    const { clock } = made();
    clock.show([PRESENT - 900_000, PRESENT - 300_000], PRESENT - 600_000);
    clock.seek(PRESENT - 400_000);
    expect(clock.window()).toEqual([PRESENT - 900_000, PRESENT - 300_000]);
    clock.seek(PRESENT - 5_000_000);
    const [t0, t1] = clock.window();
    expect(t0 < clock.now() && clock.now() < t1 && t1 - t0 === 600_000).toBe(true);
  });

  it("always shows an instant within its window, and none after the present or before the beginning", () => {
    const step = fc.oneof(
      fc.record({ act: fc.constant("pan"), by: fc.integer({ min: -10_000_000, max: 10_000_000 }) }),
      fc.record({ act: fc.constantFrom("zoom", "zoom ahead"), by: fc.integer({ min: -5, max: 5 }) }),
      fc.record({ act: fc.constant("seek"), by: fc.integer({ min: -20_000_000, max: 1_000_000 }) }),
      fc.record({ act: fc.constant("play"), by: fc.integer({ min: -600, max: 600 }) }),
      fc.record({ act: fc.constant("wait"), by: fc.integer({ min: 0, max: 100_000 }) }),
      fc.record({ act: fc.constant("pause"), by: fc.constant(0) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const { clock, world } = made();
        clock.earliest = PRESENT - 15_000_000;
        for (const { act, by } of steps) {
          if (act === "pan") clock.pan(by);
          if (act === "zoom") clock.zoom(1.5 ** by, PRESENT - 1000);
          if (act === "zoom ahead") clock.zoom(1.5 ** by, clock.window()[1]);
          if (act === "seek") clock.seek(PRESENT + by);
          if (act === "play" && by !== 0) clock.play(by);
          if (act === "pause") clock.pause();
          if (act === "wait") [world.wall, world.present] = [world.wall + by, world.present + by];
          clock.tick();
          const [t0, t1] = clock.window();
          const now = clock.now();
          if (now < t0 - 1e-3 || now > t1 + 1e-3 || now > world.present) return false;
        }
        return true;
      }),
      {
        examples: [
          [
            [
              { act: "zoom", by: -6 },
              { act: "wait", by: 86_356 },
              { act: "pause", by: 0 },
              { act: "zoom", by: 5 },
            ],
          ],
        ],
      },
    );
  });
});

describe("an instant typed by people", () => {
  it("accepts words of the reader's language", () => {
    const words: [string, string][] = [
      ["gestern", "yesterday"],
      ["Dez", "dec"],
    ];
    const read = (text: string): number | null => parseWhen(text, PRESENT, "ms", "UTC", words);
    expect(read("Gestern 14:00")).toBe(parseWhen("yesterday 14:00", PRESENT, "ms", "UTC"));
    expect(read("3 Dez 2025 07:12")).toBe(Date.UTC(2025, 11, 3, 7, 12));
    expect(read("gestern")).not.toBeNull();
  });

  const at = (text: string) => {
    const found = parseWhen(text, PRESENT, "ms", "UTC");
    return found === null ? null : new Date(found).toISOString().slice(0, 19);
  };

  it.each([
    ["yesterday 14:00", "2026-11-21T14:00:00"],
    ["today 07:12:05", "2026-11-22T07:12:05"],
    ["07:12", "2026-11-22T07:12:00"],
    ["14:00", "2026-11-21T14:00:00"],
    ["2026-11-20 03:04", "2026-11-20T03:04:00"],
    ["2026-11-20T03:04:05", "2026-11-20T03:04:05"],
    ["20 Nov 2026, 03:04:05", "2026-11-20T03:04:05"],
    ["20 nov 03:04", "2026-11-20T03:04:00"],
    ["20. Nov 2026, 03:04:05", "2026-11-20T03:04:05"],
    ["20.11.2026 03:04", "2026-11-20T03:04:00"],
    ["1.2. 03:04", "2026-02-01T03:04:00"],
    ["32.11.2026 03:04", null],
    ["yesterday", "2026-11-21T00:00:00"],
    ["-10 min", "2026-11-22T11:50:00"],
    ["3 h ago", "2026-11-22T09:00:00"],
    ["90 seconds ago", "2026-11-22T11:58:30"],
    ["now", "2026-11-22T12:00:00"],
    ["soon", null],
    ["25:99", null],
    ["10 min", null],
  ])("%s", (text, wanted) => {
    expect(at(text)).toBe(wanted);
  });

  it("is a number on a feed of ticks, or one relative to the present", () => {
    expect([
      parseWhen("1,200", 5000, "ticks", "UTC"),
      parseWhen("1.200", 5000, "ticks", "UTC"),
      parseWhen("tick 40", 5000, "ticks", "UTC"),
      parseWhen("-100", 5000, "ticks", "UTC"),
    ]).toEqual([1200, 1200, 40, 4900]);
  });

  it("is read in the reader's zone", () => {
    expect(parseWhen("today 14:00", PRESENT, "ms", "Europe/Berlin")).toBe(Date.UTC(2026, 10, 22, 13));
  });
});
