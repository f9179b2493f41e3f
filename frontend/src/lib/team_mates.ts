import { getAll } from "./api";
import { id, list, record, string } from "./parse";

const member = record({ id, name: string });
export type TeamMate = ReturnType<typeof member>;

/** Members of the reader's teams, including the reader. */
export async function teamMates(): Promise<TeamMate[]> {
  const teams = await getAll("teams/", record({ members: list(member) }));
  const found = new Map(teams.flatMap((team) => team.members).map((one) => [one.name, one]));
  return [...found.values()].sort((a, b) => a.name.localeCompare(b.name));
}
