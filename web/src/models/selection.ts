/** Rows that are chosen to be decided together. */

export function toggled(chosen: ReadonlySet<string>, id: string): Set<string> {
  const next = new Set(chosen);
  if (!next.delete(id)) next.add(id);
  return next;
}

/** The ids of both rows and of those between them. */
export function between(ids: readonly string[], from: string, to: string): string[] {
  const places = [ids.indexOf(from), ids.indexOf(to)];
  if (places.includes(-1)) return [];
  return ids.slice(Math.min(...places), Math.max(...places) + 1);
}

type Choice = { id: string; label: string; requiresComment: boolean };

/** The options that every one of them has, in the order of the first. */
export function commonOptions<O extends Choice>(all: readonly (readonly O[])[]): O[] {
  const [first = [], ...others] = all;
  return first.filter((each) => others.every((options) => options.some((other) => other.id === each.id && other.label === each.label)));
}

/** How often each reason was given. */
export function reasonCounts(items: readonly { done: boolean; why: string }[]): [why: string, count: number][] {
  const counts = new Map<string, number>();
  for (const { done, why } of items) if (!done) counts.set(why, (counts.get(why) ?? 0) + 1);
  return [...counts];
}

/** What is chosen, in the order of the list. Rows that have left the list since stay chosen, as they were seen last. */
export function chosenRows<Row extends { id: string }>(chosen: ReadonlySet<string>, rows: readonly Row[], seen: ReadonlyMap<string, Row>): Row[] {
  const listed = new Set(rows.map((each) => each.id));
  const gone = [...seen.values()].filter((each) => !listed.has(each.id));
  return [...rows, ...gone].filter((each) => chosen.has(each.id));
}

/** What would happen to, or has happened to, each of many: `texts` as sentences, or why nothing does. */
export type Outcome = { id: string; done: boolean; texts: readonly string[] };
export type OutcomeGroup = { done: boolean; texts: readonly string[]; ids: string[] };

/** Those with the same fate together: first what is done, and the largest group first. */
export function outcomeGroups(items: readonly Outcome[]): OutcomeGroup[] {
  const groups = new Map<string, OutcomeGroup>();
  for (const { id, done, texts } of items) {
    const key = JSON.stringify([done, texts]);
    const group = groups.get(key) ?? { done, texts, ids: [] };
    group.ids.push(id);
    groups.set(key, group);
  }
  return [...groups.values()].toSorted((one, other) => Number(other.done) - Number(one.done) || other.ids.length - one.ids.length);
}
