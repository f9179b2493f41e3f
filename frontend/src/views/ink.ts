/** The page's colours for drawing on canvases. */

import { token } from "../lib/colours";

export interface Ink {
  surface: string;
  raised: string;
  line: string;
  strong: string;
  text: string;
  soft: string;
  faint: string;
  accent: string;
  onBar: string;
  critical: string;
}

export function readInk(): Ink {
  return {
    surface: token("--surface"),
    raised: token("--surface-2"),
    line: token("--line"),
    strong: token("--line-strong"),
    text: token("--text"),
    soft: token("--text-2"),
    faint: token("--text-3"),
    accent: token("--accent"),
    onBar: token("--surface"),
    critical: token("--critical"),
  };
}
