/** The proposal of the editor of constraint queries for a feed. */

import type { Mutual } from "../../../data/constraint_data";
import { nearness } from "../../../data/nearness";
import { get } from "../../../lib/api";
import { positions } from "../../../lib/answers";
import { type Feed } from "../../../lib/shapes";

const COUNT = 3;

/** At once. */
export function firstProposal(feed: Feed): Mutual {
  return {
    k: COUNT,
    within: feed.time === "ms" ? "PT10S" : 10,
    distance: feed.crs === "geographic" ? "100" : "1",
    where: [],
    isDifferent: true,
  };
}

/**
 * With a distance and a span that are unusual on this feed; null if its present positions do not
 * show any.
 */
export async function betterProposal(feed: Feed): Promise<Mutual | null> {
  try {
    const found = nearness((await get(`feeds/${feed.name}/positions`, positions)).entities, COUNT, feed);
    return found === null ? null : { ...firstProposal(feed), within: found.within, distance: String(found.distance) };
  } catch {
    // The first proposal stays.
    return null;
  }
}
