import { describe, expect, it } from "vitest";
import { failedNode, groupsOf } from "@/screens/flows/failures";
import { matches, versionIn, versionName } from "@/screens/flows/versions";
import type { Flow, FlowRun, NodeVisit } from "@/services/flows";

const run = (id: string, error: string): FlowRun => ({
  id, error, version: "g1", status: "failed", startedBy: "", createdAt: "", endedAt: null, wakesAt: null, machineWaits: [], asks: false, answered: false, missing: [],
});
const visit = (node: string, state: string): NodeVisit => ({ node, run: "r1", state, attempts: 1, took: null, error: "" });

describe("failures", () => {
  it("are grouped by error, the most frequent first", () => {
    const groups = groupsOf([run("1", "a"), run("2", "b"), run("3", "b")]);
    expect(groups.map((each) => [each.error, each.runs.map((same) => same.id)])).toEqual([["b", ["2", "3"]], ["a", ["1"]]]);
  });

  it("have the node that failed last", () => {
    expect(failedNode([visit("read", "done"), visit("send.1[0]/pay", "failed"), visit("send.1[1]/pay", "done")])).toBe("send.1[0]/pay");
    expect(failedNode([])).toBe("");
  });
});

describe("versions", () => {
  const base = { createdAt: "", nodes: 1, isLoaded: true, workers: 1, isDocument: false };
  const flow: Flow = {
    name: "größe/eins",
    description: "Sends parcels",
    schema: {},
    versions: [{ ...base, id: "g1-abcdefghijkl", label: "", isCurrent: false }, { ...base, id: "g1-b", label: "1.2", isCurrent: true }],
  };
  it("are found by id and label; else the current one is meant", () => {
    expect(versionIn(flow, "g1-abcdefghijkl")!.id).toBe("g1-abcdefghijkl");
    expect(versionIn(flow, "1.2")!.id).toBe("g1-b");
    expect(versionIn(flow, undefined)!.id).toBe("g1-b");
    expect(flow.versions.map(versionName)).toEqual(["g1-abcdefgh", "1.2"]);
    expect(versionName({ id: "canvas-0123456789", label: "" })).toBe("canvas-01234567");
  });
  it("a search looks for every word in name and description", () => {
    expect(matches(flow, "GRÖSSE")).toBe(false);
    expect(matches(flow, "größe parcels")).toBe(true);
    expect(matches(flow, "")).toBe(true);
  });
});
