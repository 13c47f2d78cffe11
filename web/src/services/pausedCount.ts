import { client } from "./client";

export const AT_BREAKPOINT = "at:breakpoint";

/** How many runs of a search stand at a breakpoint. */
export async function countPaused(q: string): Promise<number> {
  return (await client.countRuns({ q: [q, AT_BREAKPOINT].filter(Boolean).join(" ") })).count;
}
