import { expect, it } from "vitest";
import { afterTitle, pageOf, titleOf } from "@/models/title";

it("a title names what is shown, then the area; long and empty parts do not hide the rest", () => {
  expect(titleOf(["Refund 12?", "Inbox"])).toBe("Refund 12? · Inbox · Holdfast");
  expect(titleOf(["", "Runs"])).toBe("Runs · Holdfast");
  expect(titleOf(["two\n lines"])).toBe("two lines · Holdfast");
  expect(titleOf(["😀".repeat(100), "Inbox"])).toBe(`${"😀".repeat(79)}… · Inbox · Holdfast`);
});

it("the questions of the inbox are one page, each run is its own", () => {
  expect(pageOf("/inbox/mine")).toBe(pageOf("/prefix/inbox/all/1"));
  expect(pageOf("/runs/a")).not.toBe(pageOf("/runs/b"));
  expect(pageOf("/runs/a/")).toBe(pageOf("/runs/a"));
});

it("a question does not repeat its title", () => {
  expect(afterTitle("Refund?", "Refund?")).toBe("");
  expect(afterTitle("Refund?\n\nThe customer waits.", "Refund?")).toBe("The customer waits.");
  expect(afterTitle("# Refund?\n\nThe customer waits.", "Refund?")).toBe("# Refund?\n\nThe customer waits.");
  expect(afterTitle("Refund? Now.", "Refund?")).toBe("Refund? Now.");
});
