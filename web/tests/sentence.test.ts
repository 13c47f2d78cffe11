import { expect, test } from "vitest";
import { momentsIn, partsOf, reasonText } from "../src/models/sentence";
import { setFormats } from "../src/models/time";

test("times in a sentence of the server are moments, which the page shows in the reader's zone", () => {
  const at = "2026-11-18T02:58:00Z";
  expect(partsOf({ text: "Asked of the group finance, due 18 Nov 02:58 UTC", times: [at] })).toEqual(["Asked of the group finance, due ", { at }, ""]);
  expect(partsOf({ text: "dana moved the deadline to 18 Nov 02:58 UTC: late", times: ["group:finance", at] })).toEqual(["dana moved the deadline to ", { at }, ": late"]);
  expect(partsOf({ text: "sam commented", times: [at] })).toEqual(["sam commented"]);
});

test("moments of a record are found as text and as microseconds, and nothing else is one", () => {
  expect(momentsIn({ expires_at: 1_795_102_591_139_171, until: "2026-11-18T02:58:00Z", at: "2026-11-18T02:58:00Z" })).toEqual(["2026-11-19T15:36:31.139Z", "2026-11-18T02:58:00Z"]);
  for (const data of [null, "text", [], { to: null, until: true, expires_at: 1e300 }]) expect(momentsIn(data)).toEqual([]);
});

test("a reason names the question, people and times as the reader knows them", () => {
  setFormats("Europe/Berlin", null);
  const text = "user:kim has decided hold 0193-a: 'refund'; the decision is final at 2026-11-17T22:15:08.500000Z unless they undo it.";
  expect(reasonText(text, { id: "0193-a", options: [{ id: "refund", label: "Pay it back" }, { id: "no", label: "" }] }, "this question", new Date("2026-11-17T22:15:00Z"))).toBe(
    "kim has decided this question: “Pay it back”; the decision is final at 17 Nov 23:15:08 unless they undo it.",
  );
  setFormats(null, null);
});
