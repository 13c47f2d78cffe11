import type { StepWire } from "@client";
import { expect, test, vi } from "vitest";
import { stepOf } from "../src/services/steps";

// It reads the page when it is loaded.
vi.mock("../src/services/client", () => ({ client: {}, addressOf: (path: string) => path, requireFields: (wire: unknown) => wire }));

const TURNED = "fetch \u202eevil";
const SHOWN = "fetch \\u202eevil";

test("what an agent wrote into a step does not turn the text around it", () => {
  const span = { number: 1, reason: "", started_at: "", ended_at: null, term: 1, worker: "", error: null, traceback: TURNED };
  const call = { name: TURNED, effect: "read", at: "", seq: 2, value: null, error: null, tokens: 0, cost: 0, traceback: TURNED };
  const wire = { node: "work", name: "work", scope: "", run: "run", waits: [], retries: [], error: "", spans: [span], calls: [call], emitted: [], changes: [], traceback: TURNED };
  const step = stepOf(wire as unknown as StepWire, "run");
  expect([step.calls[0]!.name, step.calls[0]!.traceback, step.spans[0]!.traceback, step.traceback]).toEqual([SHOWN, SHOWN, SHOWN, SHOWN]);
});
