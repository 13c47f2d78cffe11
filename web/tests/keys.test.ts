import { expect, it } from "vitest";
import { isTyping, keyOf, matcherOf, typingIn } from "@/models/keys";

const plain = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };

it("knows a key and a sequence of two", () => {
  const keys = matcherOf(() => ["g i", "j", "?"]);
  expect(keys.press("j", 0)).toBe("j");
  expect(keys.press("g", 10)).toBeNull();
  expect(keys.press("i", 20)).toBe("g i");
  expect(keys.press("i", 30)).toBeNull();
});

it("forgets the first key of a sequence after a second", () => {
  const keys = matcherOf(() => ["g i"]);
  keys.press("g", 0);
  expect(keys.press("i", 1001)).toBeNull();
});

it("names keys as the table does", () => {
  expect(keyOf({ ...plain, key: "?", shiftKey: true })).toBe("?");
  expect(keyOf({ ...plain, key: "Enter", metaKey: true })).toBe("Mod+Enter");
  expect(keyOf({ ...plain, key: "ArrowDown", shiftKey: true })).toBe("Shift+ArrowDown");
});

it("leaves letters to fields", () => {
  expect(isTyping({ tagName: "INPUT", type: "text" })).toBe(true);
  expect(isTyping({ tagName: "INPUT", type: "checkbox" })).toBe(false);
  // Arrows move a slider; letters mean there what they mean elsewhere.
  expect(isTyping({ tagName: "INPUT", type: "range" })).toBe(false);
  expect(isTyping({ tagName: "INPUT", type: "file" })).toBe(false);
  expect(isTyping({ tagName: "INPUT", type: "date" })).toBe(true);
  expect(isTyping({ tagName: "TEXTAREA" })).toBe(true);
  expect(isTyping({ tagName: "DIV", isContentEditable: true })).toBe(true);
  expect(isTyping({ tagName: "BUTTON" })).toBe(false);
  expect(isTyping(null)).toBe(false);
});

it("sends a form by Ctrl+Enter, and leaves a field by Escape, once a search is empty", () => {
  const form = { className: "add-comment" };
  expect(typingIn("Mod+Enter", { tagName: "TEXTAREA", form })).toBe("send");
  expect(typingIn("Mod+Enter", { tagName: "TEXTAREA", form: null })).toBeNull();
  expect(typingIn("Mod+Enter", { tagName: "INPUT", type: "text", form })).toBeNull();
  expect(typingIn("Escape", { tagName: "TEXTAREA", form })).toBe("leave");
  expect(typingIn("Escape", { tagName: "INPUT", type: "search", value: "flow:a" })).toBeNull();
  expect(typingIn("Escape", { tagName: "INPUT", type: "search", value: "" })).toBe("leave");
  expect(typingIn("Escape", { tagName: "SELECT" })).toBeNull();
  expect(typingIn("x", { tagName: "TEXTAREA", form })).toBeNull();
});
