import { describe, expect, it } from "vitest";
import { superseded } from "../build_keeping";
import { covered, windowInSight } from "../src/views/live/in_sight";

const edges = (left: number, top: number, right: number, bottom: number) => ({ left, top, right, bottom });

describe("the part of the map covered by panels", () => {
  const map = edges(64, 52, 1264, 552);

  it("is empty for panels next to the map", () => {
    expect(covered(map, [edges(1264, 52, 1600, 860), edges(0, 52, 64, 860)])).toEqual(edges(0, 0, 0, 0));
  });

  it("is counted from the side to which a panel is attached", () => {
    expect(covered(map, [edges(64, 52, 364, 860), edges(916, 52, 1264, 860)])).toEqual(edges(300, 0, 348, 0));
  });

  it("is the lower part for a panel of full width", () => {
    expect(covered(edges(0, 52, 390, 480), [edges(0, 300, 390, 788)])).toEqual(edges(0, 0, 0, 180));
  });
});

describe("a period under panels", () => {
  const plot = edges(200, 600, 1000, 800);

  it("is fitted into the free part, with more time beneath the panels", () => {
    expect(windowInSight([1000, 1500], plot, edges(100, 0, 200, 0))).toEqual([900, 1700]);
    expect(windowInSight([1000, 1500], plot, edges(0, 0, 0, 0))).toEqual([1000, 1500]);
  });

  it("is fitted to the whole plot if nothing is free", () => {
    expect(windowInSight([1000, 1500], plot, edges(400, 0, 380, 0))).toEqual([1000, 1500]);
  });
});

describe("files of earlier builds", () => {
  it("are removed when no kept build uses them", () => {
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
