import { expect, test } from "vitest";
import { partsOf } from "../src/models/sentence";

test("times in a sentence of the server are moments, which the page shows in the reader's zone", () => {
  const at = "2026-11-18T02:58:00Z";
  expect(partsOf({ text: "Asked of the group finance, due 18 Nov 02:58 UTC", times: [at] })).toEqual(["Asked of the group finance, due ", { at }, ""]);
  expect(partsOf({ text: "dana moved the deadline to 18 Nov 02:58 UTC: late", times: ["group:finance", at] })).toEqual(["dana moved the deadline to ", { at }, ": late"]);
  expect(partsOf({ text: "sam commented", times: [at] })).toEqual(["sam commented"]);
});
