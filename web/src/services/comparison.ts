/** The comparison of two records, of one run or of two. The server makes it, as for `holdfast diff`. */
import type { Target } from "@/models/diff";
import { client } from "./client";

export type ValueChange = { path: string; kind: string; before: unknown; after: unknown; lines: string[] };
export type ValueChanges = { shown: ValueChange[]; leftOut: number };
export type ComparedSide = { run: string; record: number; node: string; at: string; status: string; flow: string; version: string };
export type Usage = { steps: number; ms: number; tokens: number; cost: number };
export type VisitChange = { node: string; visit: number; kind: string; changes: ValueChange[]; before: Usage | null; after: Usage | null; outcomes: [string, string] };
export type Comparison = {
  same: boolean;
  relation: string;
  parted: { run: string; record: number; node: string } | null;
  from: ComparedSide;
  to: ComparedSide;
  input: ValueChanges;
  state: ValueChanges;
  artifacts: ValueChanges;
  visits: VisitChange[];
  sameVisits: number;
  spent: [Usage, Usage];
};

export async function compare(from: Target, to: Target): Promise<Comparison> {
  const there = to.record === undefined ? to.run : `${to.run}@${to.record}`;
  return comparisonOf(await client.diffRuns(from.run, { to: there, at: from.record === undefined ? null : String(from.record) }));
}

type Wire = Record<string, unknown>;

const objectOf = (value: unknown): Wire => (typeof value === "object" && value !== null ? (value as Wire) : {});
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const textIn = (wire: Wire, name: string): string => (typeof wire[name] === "string" ? wire[name] : "");
/** Microseconds since 1970 have so many digits that they are read as a bigint. */
const numberIn = (wire: Wire, name: string): number => (typeof wire[name] === "number" || typeof wire[name] === "bigint" ? Number(wire[name]) : 0);

function comparisonOf(wire: Wire): Comparison {
  const parted = wire["parted"] === null ? null : objectOf(wire["parted"]);
  const [before, after] = listOf(wire["spent"]);
  return {
    same: wire["same"] === true,
    relation: textIn(wire, "relation"),
    parted: parted === null ? null : { run: textIn(parted, "run"), record: numberIn(parted, "seq"), node: textIn(parted, "node") },
    from: sideOf(objectOf(wire["a"])),
    to: sideOf(objectOf(wire["b"])),
    input: changesOf(wire["input"]),
    state: changesOf(wire["state"]),
    artifacts: changesOf(wire["artifacts"]),
    visits: listOf(wire["nodes"]).map((each) => visitOf(objectOf(each))),
    sameVisits: numberIn(wire, "same_nodes"),
    spent: [usageOf(objectOf(before)), usageOf(objectOf(after))],
  };
}

function sideOf(wire: Wire): ComparedSide {
  return { run: textIn(wire, "run"), record: numberIn(wire, "seq"), node: textIn(wire, "node"), at: textIn(wire, "at"), status: textIn(wire, "status"), flow: textIn(wire, "flow"), version: textIn(wire, "version") };
}

function changesOf(value: unknown): ValueChanges {
  const wire = objectOf(value);
  return { shown: listOf(wire["shown"]).map((each) => changeOf(objectOf(each))), leftOut: numberIn(wire, "left_out") };
}

function changeOf(wire: Wire): ValueChange {
  const lines = listOf(wire["lines"]).filter((each) => typeof each === "string");
  return { path: textIn(wire, "path"), kind: textIn(wire, "kind"), before: shownValue(wire["before"]), after: shownValue(wire["after"]), lines };
}

/** A large value comes as its size and digest. */
function shownValue(value: unknown): unknown {
  const wire = objectOf(value);
  if (typeof wire["large"] !== "string" || typeof wire["sha256"] !== "string") return value;
  return `${wire["large"]}, ${numberIn(wire, "bytes")} bytes, ${wire["sha256"].slice(0, 8)}`;
}

function visitOf(wire: Wire): VisitChange {
  const [before = "", after = ""] = listOf(wire["outcome"]).map(String);
  const changes = ["changes", "calls", "asked"].flatMap((name) => listOf(wire[name]).map((each) => changeOf(objectOf(each))));
  const usage = (name: string) => (wire[name] ? usageOf(objectOf(wire[name])) : null);
  return { node: textIn(wire, "node"), visit: numberIn(wire, "visit"), kind: textIn(wire, "kind"), changes, before: usage("a"), after: usage("b"), outcomes: [before, after] };
}

function usageOf(wire: Wire): Usage {
  return { steps: numberIn(wire, "steps"), ms: numberIn(wire, "duration") / 1000, tokens: numberIn(wire, "tokens"), cost: numberIn(wire, "cost") };
}
