import { expect, it } from "vitest";
import { isRows, plainText } from "@/models/values";

it("what nobody can see is written out, as the server does", () => {
  expect(plainText("Pay \u202e00.01\u202c EUR")).toBe("Pay \\u202e00.01\\u202c EUR");
  expect(plainText("\u2066a\u2069 \u200bb \ufeffc \u{e0041}")).toBe("\\u2066a\\u2069 \\u200bb \\ufeffc \\U000e0041");
  // A joiner is a part of this emoji and of this word, and hides something between plain letters.
  expect(plainText("👩\u200d🔧")).toBe("👩\u200d🔧");
  expect(plainText("می\u200cخواهم")).toBe("می\u200cخواهم");
  expect(plainText("pay\u200dpal")).toBe("pay\\u200dpal");
  // Marks that cover the lines above and below.
  expect(plainText("e\u0301".repeat(9) + "Z" + "\u0301".repeat(10))).toBe("e\u0301".repeat(9) + "Z" + "\u0301".repeat(8) + "\\u0301\\u0301");
  expect(plainText("größe, 値段, עברית")).toBe("größe, 値段, עברית");
});

it("a long list of flat objects is a table too", () => {
  expect(isRows(Array.from({ length: 5000 }, (_, place) => ({ place })))).toBe(true);
  expect(isRows([{ a: 1 }, { a: [1] }])).toBe(false);
});
