/** The common parts of the families about entities that cross the border of one region. */

import type { Family } from "./family";

export const CROSSING = {
  hasRegion: true,
  isAboutPlaces: true,
  draft: { key: "crossing", own: ["within", "types"] },
} satisfies Partial<Family>;
