import { describe, expect, it } from "vitest";
import { collectionFrom } from "../src/data/overlay_data";

const read = (geometry: unknown, isGeographic = true): unknown =>
  collectionFrom(JSON.stringify({ type: "FeatureCollection", features: [{ type: "Feature", geometry }] }), isGeographic);
const metres = {
  type: "Polygon",
  coordinates: [
    [
      [3_500_000, 5_700_000],
      [3_500_010, 5_700_000],
      [3_500_000, 5_700_010],
    ],
  ],
};

describe("a file of an overlay", () => {
  it("in metres is refused with the remedy, but not on a plan", () => {
    expect(JSON.stringify(read(metres))).toContain("EPSG:4326");
    expect(read({ type: "GeometryCollection", geometries: [metres] })).toHaveProperty("fault");
    expect(read(metres, false)).toHaveProperty("collection");
  });

  it("in degrees is shown, however high its corners are", () => {
    expect(
      read({
        type: "LineString",
        coordinates: [
          [7.4, 51.9, 2_500],
          [190, -80, 3_000],
        ],
      }),
    ).toHaveProperty("collection");
    expect(read(null)).toHaveProperty("collection");
  });

  it("without features is refused", () => {
    expect(collectionFrom('{"type": "FeatureCollection", "features": []}', true)).toEqual({ fault: "it has no features" });
  });
});
