import type { HoldWire } from "@client";
import { expect, test, vi } from "vitest";
import { noteOf } from "../src/screens/runs/GraphNodeBox";
import { holdOf, personOf } from "../src/services/holds";
import { visitState } from "../src/services/runHistory";

// It reads the page when it is loaded.
vi.mock("../src/services/client", () => ({ client: {}, addressOf: (path: string) => path, requireFields: (wire: unknown) => wire }));

const WIRE = { id: "h", version: 1, prompt: "Pay?", title: "", status: "pending", assignee_type: "group", assignee_resolved: { value: "finance" } };

const why = (text: string) => holdOf({ ...WIRE, why: text } as unknown as HoldWire).why;

test("why a question is here names groups and roles in words", () => {
  expect(why("flow pay asks group:finance")).toBe("flow pay asks the group finance");
  expect(why("reassigned to role:lead")).toBe("reassigned to the role lead");
  expect(why("flow pay asks user:kim")).toBe("flow pay asks kim");
  expect(why("flow group: asks")).toBe("flow group: asks");
});

test("the note of a node keeps to its room: counts before the state, which has an icon", () => {
  const fact = { state: "done", visits: 1, items: 200, done: 200, seq: 1 };
  expect(noteOf("Done", fact, 200)).toBe("done · 200 of 200 done");
  expect(noteOf("Done", fact, 90)).toBe("200 of 200 done");
  expect(noteOf("Waiting for input", { ...fact, items: 0 }, 20)).toBe("waiting for input");
  expect(noteOf("Paused at breakpoint", { ...fact, items: 0, state: "at_breakpoint" }, 200)).toBe("paused");
});

test("a visit is paused only while a breakpoint holds it", () => {
  const wait = { kind: "person", since: "", breakpoint: true };
  expect(visitState({ state: "asking", waits: [{ ...wait, until: null }] })).toBe("at_breakpoint");
  expect(visitState({ state: "asking", waits: [{ ...wait, until: "2026-01-01T00:00:00Z" }] })).toBe("asking");
  expect(visitState({ state: "done", waits: [{ ...wait, until: null }] })).toBe("done");
});

test("who acts has the name that the history gives", () => {
  expect(personOf("user:kim")).toBe("kim");
  expect(personOf("system:engine")).toBe("Holdfast");
  expect(personOf("policy:small")).toBe("the policy small");
});
