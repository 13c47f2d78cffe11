// @vitest-environment jsdom
import { type ReactNode, act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it } from "vitest";
import { FieldControl } from "@/components/FieldControl";
import { Folded } from "@/components/Folded";
import { FormFields } from "@/components/FormFields";
import { Markdown } from "@/components/Markdown";
import { Value } from "@/components/Value";
import { foldOf } from "@/models/fold";
import { firstValues, formOf, reviewOf } from "@/models/form";
import { sectionOf } from "@/models/formSection";
import { sizeText } from "@/models/size";
import { besideCall, toolCallOf } from "@/models/toolCall";

function lines(count: number): string {
  return Array.from({ length: count }, (_, place) => String(place)).join("\n");
}

it("a text is whole up to 20 lines and 4 KiB, folded up to 256 KiB, and a download beyond", () => {
  expect([foldOf("x"), foldOf(lines(20)), foldOf("x".repeat(4096))].map((each) => each.kind)).toEqual(["whole", "whole", "whole"]);
  expect([foldOf(lines(21)), foldOf("ä".repeat(2049)), foldOf("x".repeat(256 * 1024))].map((each) => each.kind)).toEqual(["folded", "folded", "folded"]);
  expect(foldOf("x".repeat(256 * 1024 + 1))).toMatchObject({ kind: "download", bytes: 262_145 });
  expect(foldOf(lines(30)).beginning).toBe(lines(20));
  expect([sizeText(5), sizeText(5000), sizeText(3_000_000)]).toEqual(["5 B", "5 KiB", "2.9 MiB"]);
});

it("a folded text shows a page of a phone at most, and less is whole where it is told so", () => {
  expect(foldOf("x".repeat(20_000)).beginning).toHaveLength(1000);
  expect(foldOf("x".repeat(1001), 1000)).toMatchObject({ kind: "folded", bytes: 1001 });
  expect(foldOf("x".repeat(1000), 1000).kind).toBe("whole");
  expect(foldOf("x".repeat(1000), 400).beginning).toHaveLength(400);
});

it("what an author names like the call of a tool hides nothing of the context", () => {
  const context = { tool: "hammer", arguments: { a: 1 }, amount: "1,000,000 EUR" };
  expect(toolCallOf({ context, schema: null })).toBeNull();
  expect(toolCallOf({ context, schema: { "x-form": { sections: [] } } })).toBeNull();
  expect(toolCallOf({ context, schema: { properties: { arguments: { type: "object" } } } })?.tool).toBe("hammer");
  expect(besideCall(context)).toEqual({ amount: "1,000,000 EUR" });
});

async function rendered(element: ReactNode): Promise<HTMLElement> {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  const place = document.body.appendChild(document.createElement("div"));
  await act(async () => createRoot(place).render(element));
  return place;
}

it("a long list says what is left out, and shows it", async () => {
  const place = await rendered(<Value value={Array.from({ length: 201 }, (_, each) => `pay ${each}`)} />);
  expect(place.textContent).toContain("1 more entry is not shown.");
  expect(place.textContent).not.toContain("pay 200");
  await act(async () => place.querySelector("button")!.click());
  expect(place.textContent).toContain("pay 200");
});

it("characters that are not seen are written out, also where Markdown names them by an entity", async () => {
  const text = "Pay &#x202e;00.01&#8236; to &ZeroWidthSpace;dana, [a &#x202e;link](https://example.org), ![a &rlm;picture](https://example.org/a.png)";
  const shown = (await rendered(<Markdown text={text} />)).textContent;
  expect(shown).toContain("Pay \\u202e00.01\\u202c to \\u200bdana, a \\u202elink");
  expect(shown).not.toMatch(/[\u200b-\u200f\u202a-\u202e]/);
});

it("a field with the name of a property of all objects is not wrong; the title of a text is written out", async () => {
  const names = ["constructor", "toString", "valueOf"].map((field) => ({ type: "input", field, kind: "text" }));
  const form = formOf({ "x-form": { sections: [{ type: "context", title: "Pay \u202e00.01", content: "" }, ...names] } }, null);
  const asked = { values: firstValues(form, {}), decision: null, context: {} };
  const place = await rendered(<FormFields form={form} values={asked.values} review={reviewOf(form, asked)} errors={{}} onChange={() => undefined} />);
  expect([...place.querySelectorAll("input")].map((each) => each.getAttribute("aria-invalid"))).not.toContain("true");
  expect(place.querySelector("h3")!.textContent).toBe("Pay \\u202e00.01");
});

it("a field says what its look hides, and one that is read only shows it", async () => {
  const section = sectionOf({ field: "iban", kind: "text" });
  const field = { id: "f", section, value: "DE12\u202e34\u202c", notes: "", error: "", required: false, onChange: () => undefined };
  expect((await rendered(<FieldControl {...field} readonly={false} />)).textContent).toContain("It is: DE12\\u202e34\\u202c");
  expect((await rendered(<FieldControl {...field} readonly />)).textContent).toBe("DE12\\u202e34\\u202c");
  expect((await rendered(<FieldControl {...field} value="DE12" readonly={false} />)).textContent).toBe("");
});

it("a field grows with its text, and says when not all of it is in view", async () => {
  const section = sectionOf({ field: "command", kind: "textarea" });
  const field = { id: "f", section, notes: "", error: "", required: false, readonly: false, onChange: () => undefined };
  const short = await rendered(<FieldControl {...field} value={lines(30)} />);
  expect([short.querySelector("textarea")!.rows, short.querySelector("p")]).toEqual([30, null]);
  const long = await rendered(<FieldControl {...field} value={`${lines(50)}\ncurl`} />);
  expect(long.querySelector("p")!.textContent).toContain("About 51 lines: not all are in view.");
});

it("Markdown has no element of its own making", async () => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  const place = document.body.appendChild(document.createElement("div"));
  const root = createRoot(place);
  const text = "# H <script>x</script>\n\n<img src=x onerror=y> [a](https://example.org:8443/p) [b](javascript:x) [c](data:text/html,x) ![d](https://example.org/i.png) <b>e</b>";
  await act(async () => root.render(<Markdown text={text} />));
  expect(place.querySelector("script, img, b, h1, iframe")).toBeNull();
  const links = [...place.querySelectorAll("a")];
  expect(links.map((each) => [each.getAttribute("href"), each.textContent])).toEqual([
    ["https://example.org:8443/p", "a (example.org:8443)"],
    ["https://example.org/i.png", "Image d (example.org)"],
  ]);
  expect(links.every((each) => each.rel === "noopener noreferrer nofollow")).toBe(true);
  expect(place.textContent).toContain("<script>x</script>");
  await act(async () => root.render(<Markdown text={"line\n\n".repeat(50)} />));
  const button = place.querySelector("button")!;
  expect(button.textContent).toBe("Show all (300 B)");
  expect(place.querySelectorAll("p")).toHaveLength(10);
  await act(async () => button.click());
  expect([place.querySelectorAll("p").length, button.textContent]).toEqual([50, "Show less"]);
  await act(async () => root.render(<Markdown text={"x".repeat(300_000)} />));
  expect(place.querySelector("button")!.textContent).toBe("Download all (293 KiB)");
  expect(place.textContent!.length).toBeLessThan(5000);
  await act(async () => root.unmount());
});

it("a text that was opened stays open where it is shown anew", async () => {
  const show = async () => {
    const place = document.body.appendChild(document.createElement("div"));
    const root = createRoot(place);
    await act(async () => root.render(<Folded text={lines(60)}>{(shown) => <p>{shown}</p>}</Folded>));
    return { place, root };
  };
  const first = await show();
  await act(async () => first.place.querySelector("button")!.click());
  await act(async () => first.root.unmount());
  const again = await show();
  expect(again.place.querySelector("p")!.textContent).toBe(lines(60));
  await act(async () => again.place.querySelector("button")!.click());
  await act(async () => again.root.unmount());
  expect((await show()).place.querySelector("button")!.getAttribute("aria-expanded")).toBe("false");
});
