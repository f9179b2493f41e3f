/** The editor of each family: `./<family>_editor.ts`, fetched when the family is chosen. A family without one is written as JSON. */

import { isCrossing } from "../../data/query_form_data";
import type { OpenEditor } from "./editor";

const modules = import.meta.glob<{ open: OpenEditor }>("./*_editor.ts");

export async function editorOf(family: string): Promise<OpenEditor> {
  const name = isCrossing(family) ? "crossing" : family;
  const load = modules[`./${name}_editor.ts`] ?? modules["./text_editor.ts"];
  if (load === undefined) throw new Error("the build has no editors");
  return (await load()).open;
}
