/** Holds: what the inbox shows of them, and what a person does with them. */
import { client } from "./client";

export async function countOpen(view: "mine" | "groups" | "unassigned" | "all"): Promise<number> {
  return (await client.countHolds({ view, status: ["pending"] })).count;
}
