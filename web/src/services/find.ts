/** Runs and holds by the beginning of their id. */
import { client } from "./client";

export type Found = { id: string; flow: string; status: string; title: string };

const MOST = 20;

export async function findRuns(start: string): Promise<Found[]> {
  const { items } = await client.listRuns({ q: start, limit: MOST });
  return items
    .filter((run) => run.id.startsWith(start))
    .map((run) => ({ id: run.id, flow: run.flow, status: run.status, title: "" }));
}

export async function findHolds(start: string): Promise<Found[]> {
  const { items } = await client.listHolds({ view: "all", q: start, limit: MOST });
  return items
    .filter((hold) => hold.id.startsWith(start))
    .map((hold) => ({ id: hold.id, flow: hold.flow ?? "", status: hold.status, title: hold.title || hold.prompt }));
}
