/** What the palette finds: pages, flows, runs, holds and actions, by the words that were typed. */

export type Finding = {
  id: string;
  kind: "page" | "flow" | "run" | "hold" | "action";
  label: string;
  /** What stands beside it in small: the status of a run, the group of an action. */
  hint: string;
  keys: string;
};

/** Fewer letters of an id find too much. */
export const SHORTEST_ID = 4;
const ID_START = /^[0-9a-f][0-9a-f-]*$/i;
const EACH = 14;

export function isIdStart(text: string): boolean {
  return text.length >= SHORTEST_ID && ID_START.test(text);
}

/** Each word must be in the label; labels that begin with the text come first. Of each kind at most fourteen. */
export function matching(findings: readonly Finding[], typed: string): Finding[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const text = words.join(" ");
  const found = findings
    .filter((each) => each.kind === "run" || each.kind === "hold" || words.every((word) => `${each.label} ${each.hint}`.toLowerCase().includes(word)))
    .map((each, place) => ({ each, place, rank: each.label.toLowerCase().startsWith(text) ? 0 : 1 }));
  const kinds = [...new Set(found.map(({ each }) => each.kind))];
  return kinds.flatMap((kind) =>
    found
      .filter(({ each }) => each.kind === kind)
      .toSorted((one, other) => one.rank - other.rank || one.place - other.place)
      .slice(0, EACH)
      .map(({ each }) => each),
  );
}
