/** What the families that watch entities cross the border of one place have in common. */

import type { Family } from "./family";

export const CROSSING = { hasRegion: true, draft: { key: "crossing", own: ["within", "types"] } } satisfies Partial<Family>;
