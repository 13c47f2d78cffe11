/** The node types of the palette: their group, their icon, and what a new node starts with. */
import type { Config } from "./documentData";

export type Group = "control" | "people" | "work" | "queues";
export type NodeType = { name: string; group: Group; icon: string; start: Config };

export const NODE_TYPES: readonly NodeType[] = [
  { name: "start", group: "control", icon: "M5 3.2v9.6L12.6 8 5 3.2Z", start: {} },
  { name: "end", group: "control", icon: "M4 4h8v8H4Z", start: {} },
  { name: "condition", group: "control", icon: "M8 2.2 13.8 8 8 13.8 2.2 8Z", start: { when: "true" } },
  { name: "router", group: "control", icon: "M2.5 8h4l4-4h3M6.5 8l4 4h3", start: { cases: [{ id: "first", when: "true" }] } },
  { name: "parallel", group: "control", icon: "M8 2.5v4M8 6.5 3.5 13M8 6.5l4.5 6.5M8 6.5V13", start: {} },
  { name: "join", group: "control", icon: "M3.5 3 8 9.5 12.5 3M8 9.5v4", start: { wait: "all" } },
  { name: "map", group: "control", icon: "M3 4.5h10M3 8h10M3 11.5h10", start: { over: "items", into: "results" } },
  { name: "loop", group: "control", icon: "M12.5 6A5 5 0 1 0 13 9M12.8 2.8V6H9.6", start: { while: "false", max_turns: 10 } },
  { name: "wait", group: "control", icon: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM8 5v3.2l2 1.3", start: { duration: "1h" } },
  { name: "subflow", group: "control", icon: "M2.5 4.5h6v5h-6ZM8.5 11.5h5v-5", start: { flow: "" } },
  { name: "checkpoint", group: "people", icon: "M5.5 3.5v9M10.5 3.5v9", start: { prompt: "Continue?", options: ["approve", "reject"] } },
  { name: "hitl_decision", group: "people", icon: "m3.2 8.6 3.1 3.1 6.5-7.2", start: { options: ["approve", "reject"] } },
  { name: "hitl_review", group: "people", icon: "M8 8a2.6 2.6 0 1 0 0-5.2A2.6 2.6 0 0 0 8 8Zm-5 5.4c.4-2.4 2.4-3.9 5-3.9s4.6 1.5 5 3.9", start: { queue: "reviews", prompt: "Please review.", sections: [{ type: "decision", options: ["approve", "reject"] }] } },
  { name: "set", group: "work", icon: "M3 5.5h10M3 10.5h10", start: { values: {} } },
  { name: "python", group: "work", icon: "m6 4-4 4 4 4M10 4l4 4-4 4", start: { function: "" } },
  { name: "http", group: "work", icon: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM2.5 8h11M8 2.5c2 3.5 2 7.5 0 11-2-3.5-2-7.5 0-11", start: { method: "GET", url: "https://example.com/" } },
  { name: "llm", group: "work", icon: "M8 2.5 9.5 6.5 13.5 8 9.5 9.5 8 13.5 6.5 9.5 2.5 8 6.5 6.5Z", start: { connection: "", prompt: "" } },
  { name: "agent", group: "work", icon: "M4 6h8v6.5H4ZM8 6V3M6.3 9h.01M9.7 9h.01", start: { connection: "", instructions: "" } },
  { name: "tool", group: "work", icon: "M10 2.8a3 3 0 0 0-2.6 4.5L2.8 12l1.3 1.3 4.7-4.6A3 3 0 0 0 13 5l-2 1.5L9.5 5 11 3Z", start: { tool: "" } },
  { name: "guardrail", group: "work", icon: "M8 2.3 13 4v4c0 3-2 5-5 6-3-1-5-3-5-6V4Z", start: { check: "" } },
  { name: "queue_publish", group: "queues", icon: "M8 12.5v-9M4.2 7.3 8 3.5l3.8 3.8", start: { queue: "work", payload: {} } },
  { name: "queue_consume", group: "queues", icon: "M8 3.5v9M4.2 8.7 8 12.5l3.8-3.8", start: { queue: "work" } },
  { name: "event", group: "queues", icon: "M9 2.5 4 9h3.5L7 13.5 12 7H8.5Z", start: { event: "payment.received" } },
  { name: "callback", group: "queues", icon: "M12.5 4.5v3a3 3 0 0 1-3 3H4M6.5 8 4 10.5 6.5 13", start: { url: "https://", body: { notify: "{{callback.url}}" } } },
  { name: "queue_escalation", group: "queues", icon: "M3 12.5h3v-3h3.5v-3H13v-3", start: { of: "" } },
];

export const GROUPS: readonly Group[] = ["control", "people", "work", "queues"];
const BY_NAME = new Map(NODE_TYPES.map((each) => [each.name, each]));
/** Of a type that only a newer server has. */
const UNKNOWN: NodeType = { name: "", group: "work", icon: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Z", start: {} };
/** Kinds of nodes in graphs of code. */
const KINDS: Record<string, string> = { hold: "hitl_review", timer: "wait", task: "python", agent: "agent", guardrail: "guardrail", map: "map", parallel: "parallel", subflow: "subflow" };

export function nodeType(name: string): NodeType {
  return BY_NAME.get(name) ?? BY_NAME.get(KINDS[name] ?? "") ?? UNKNOWN;
}

/** Types that other nodes can be inside of. */
export const PARENTS: ReadonlySet<string> = new Set(["map", "loop"]);
