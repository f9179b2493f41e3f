/**
 * The editor of each family, loaded when the family is chosen. A family that the pages do
 * not know is edited as JSON.
 */

import { isFamily, type FamilyName } from "../../lib/families";
import type { OpenEditor } from "./editor";

type Load = () => Promise<{ open: OpenEditor }>;

const crossing: Load = () => import("./crossing_editor");

export const EDITORS: Readonly<Record<FamilyName, Load>> = {
  border: crossing,
  transition: crossing,
  motion: () => import("./motion_editor"),
  occupancy: () => import("./occupancy_editor"),
  encounter: () => import("./encounter_editor"),
  arrival: () => import("./arrival_editor"),
  constraint: () => import("./constraint_editor"),
  composite: () => import("./composite_editor"),
  calculus: () => import("./calculus_editor"),
};

export async function editorOf(family: string): Promise<OpenEditor> {
  const load: Load = isFamily(family) ? EDITORS[family] : () => import("./text_editor");
  return (await load()).open;
}
