import { describe, expect, it } from "vitest";
import { superseded } from "../build_keeping";
import { covered, windowInSight } from "../src/views/live/in_sight";

const edges = (left: number, top: number, right: number, bottom: number) => ({ left, top, right, bottom });

describe("what panels cover of the map", () => {
  const map = edges(64, 52, 1264, 552);

  it("is nothing beside the map", () => {
    expect(covered(map, [edges(1264, 52, 1600, 860), edges(0, 52, 64, 860)])).toEqual(edges(0, 0, 0, 0));
  });

  it("is what lies over it, from the side that the panel is attached to", () => {
    expect(covered(map, [edges(64, 52, 364, 860), edges(916, 52, 1264, 860)])).toEqual(edges(300, 0, 348, 0));
  });

  it("is the lower part where the panel goes all across", () => {
    expect(covered(edges(0, 52, 390, 480), [edges(0, 300, 390, 788)])).toEqual(edges(0, 0, 0, 180));
  });
});

describe("a stretch of time under panels", () => {
  const plot = edges(200, 600, 1000, 800);

  it("is shown in what they leave free, with more time drawn beneath them", () => {
    expect(windowInSight([1000, 1500], plot, edges(100, 0, 200, 0))).toEqual([900, 1700]);
    expect(windowInSight([1000, 1500], plot, edges(0, 0, 0, 0))).toEqual([1000, 1500]);
  });

  it("is shown as ever where they leave nothing", () => {
    expect(windowInSight([1000, 1500], plot, edges(400, 0, 380, 0))).toEqual([1000, 1500]);
  });
});

describe("files of earlier builds", () => {
  it("go when no kept build has them", () => {
    expect(
      superseded(
        ["a-1.js", "a-2.js", "pages/live-1.js", "font.woff2"],
        [
          ["a-2.js", "font.woff2"],
          ["a-1.js", "font.woff2"],
        ],
      ),
    ).toEqual(["pages/live-1.js"]);
  });
});
