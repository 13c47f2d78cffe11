import { describe, expect, it } from "vitest";
import { isLetters, shownKeys } from "@/models/keys";
import { type Finding, isIdStart, matching } from "@/models/palette";

const finding = (kind: Finding["kind"], label: string, hint = ""): Finding => ({ id: label, kind, label, hint, keys: "" });

describe("the palette", () => {
  const all = [finding("page", "Runs"), finding("page", "Workers", "Operations"), finding("flow", "claims of runs"), finding("action", "Start run: claims")];

  it("finds each word in the label or beside it, in any case", () => {
    expect(matching(all, "RUN").map((each) => each.label)).toEqual(["Runs", "claims of runs", "Start run: claims"]);
    expect(matching(all, "oper work").map((each) => each.label)).toEqual(["Workers"]);
    expect(matching(all, "nothing like it")).toEqual([]);
  });

  it("puts what begins with the text first, and shows at most fourteen of a kind", () => {
    const flows = [finding("flow", "about pay"), finding("flow", "pay")];
    expect(matching(flows, "pay").map((each) => each.label)).toEqual(["pay", "about pay"]);
    const many = Array.from({ length: 30 }, (_, place) => finding("flow", `flow ${place}`));
    expect(matching([...many, finding("page", "flows")], "flow")).toHaveLength(15);
  });

  it("keeps runs and holds: the server has found them by their id", () => {
    expect(matching([finding("run", "claims")], "3fa9")).toHaveLength(1);
  });

  it("takes four characters of an id for its beginning", () => {
    expect(["3fa9", "3fa9c1e2-77", "3fa", "claims", "3fa9 x"].map(isIdStart)).toEqual([true, true, false, false, false]);
  });
});

describe("keys as they are shown", () => {
  it("are named as on the keyboard", () => {
    expect(shownKeys("Mod+k", true)).toEqual(["⌘", "K"]);
    expect(shownKeys("Mod+k", false)).toEqual(["Ctrl", "K"]);
    expect(shownKeys("g i", false)).toEqual(["g", "i"]);
    expect(shownKeys("Shift+ArrowDown", false)).toEqual(["Shift", "↓"]);
    expect(shownKeys("+", false)).toEqual(["+"]);
  });

  it("tells letters from others", () => {
    expect(["g i", "?", "Mod+k", "Escape"].map(isLetters)).toEqual([true, true, false, false]);
  });
});
