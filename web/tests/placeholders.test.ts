import { describe, expect, test } from "vitest";
import { readText, textOfValue, valueOfText } from "../src/models/documentText";

describe("a value that is typed as YAML", () => {
  test("has a placeholder as text, with or without quotation marks", () => {
    expect(valueOfText("{{amount}}")).toBe("{{amount}}");
    expect(valueOfText('"{{amount}}"')).toBe("{{amount}}");
    expect(valueOfText("{{ review.paid | default(0) }}")).toBe("{{ review.paid | default(0) }}");
  });

  test("has placeholders as text in its mappings and lists", () => {
    expect(valueOfText("paid: {{amount}}\nat: now")).toEqual({ paid: "{{amount}}", at: "now" });
    expect(valueOfText("- {{a}}\n- {b: {{c}}, d: [{{e}}]}")).toEqual(["{{a}}", { b: "{{c}}", d: ["{{e}}"] }]);
  });

  test("keeps what stands after a placeholder", () => {
    expect(valueOfText("{{amount}} EUR")).toBe("{{amount}} EUR");
    expect(valueOfText("note: {{amount}} of {{total}}\nnext: 1")).toEqual({ note: "{{amount}} of {{total}}", next: 1 });
    expect(valueOfText("text: |\n  {{amount}} EUR\n")).toEqual({ text: "{{amount}} EUR\n" });
  });

  test("is refused with its reason where it is not YAML", () => {
    expect(() => valueOfText("a: {b: 1")).toThrow(/./);
    expect(() => valueOfText("{{amount")).toThrow(/./);
  });

  test("is shown as it is kept", () => {
    expect(textOfValue("{{amount}}")).toBe('"{{amount}}"');
    expect(valueOfText("{a: 1}")).toEqual({ a: 1 });
    expect(valueOfText("{a, b}")).toEqual({ a: null, b: null });
  });
});

test("a text that is not YAML has its line apart from the reason", () => {
  const { problem } = readText("a: 1\nb: {c: 1\n", "yaml");
  expect(problem?.line).toBeGreaterThan(1);
  expect(problem?.message).not.toMatch(/line|:$/);
});
