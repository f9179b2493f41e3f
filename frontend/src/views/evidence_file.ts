/** Saves an answer with all that it rests on. */

import { query as address } from "../lib/api";
import { button, download } from "../lib/dom";
import { t } from "../lib/texts";

/** Null without an answer, as of an alert whose answer is no longer stored. */
export function evidenceFile(feed: string, detection: string | null | undefined): HTMLButtonElement | null {
  if (detection === null || detection === undefined) return null;
  return button(t("Evidence as a file"), {
    icon: "download",
    kind: "button-quiet",
    onClick: () => download(address(`/api/v1/detections/${detection}/evidence`, { feed })),
  });
}
