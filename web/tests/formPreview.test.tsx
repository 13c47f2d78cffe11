// @vitest-environment jsdom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it, vi } from "vitest";
import { FormPreview } from "@/components/FormPreview";
import { confidenceOf, decisionsIn, filled } from "@/models/formSample";

const sections = [
  { type: "context", title: "Claim {{number}}", content: "From **{{who.name}}**" },
  { type: "input", field: "amount", kind: "currency", currency: "EUR", default: "{{amount}}", extras: { confidence: "62%" } },
  { type: "input", field: "why", kind: "textarea", visible_if: "decision == 'reject'", required: true },
  { type: "input", field: "half" },
  { type: "decision", options: ["pay", { id: "reject", label: "Reject {{number}}", variant: "danger" }] },
  "not a section yet",
];
const sample = { number: 7, amount: "12.50", who: { name: "Nordwerk" } };

it("shows the form with sample data, and what an answer would lack", async () => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  const place = document.body.appendChild(document.createElement("div"));
  const root = createRoot(place);
  await act(async () => root.render(<FormPreview sections={sections} sample={sample} />));
  expect(place.querySelector("h3")!.textContent).toBe("Claim 7");
  // The parser is loaded apart.
  await vi.waitFor(async () => {
    await act(async () => undefined);
    expect(place.querySelector("strong")?.textContent).toBe("Nordwerk");
  }, 10_000);
  expect(place.querySelector<HTMLInputElement>("[data-field=amount] input")!.value).toBe("12.50");
  expect(place.textContent).toContain("62 % sure");
  expect(place.querySelector("[data-field=why]")).toBeNull();
  const [pay, reject] = [...place.querySelectorAll<HTMLButtonElement>(".decision-row button")];
  expect([pay!.textContent, reject!.textContent]).toEqual(["Pay", "Reject 7"]);
  await act(async () => reject!.click());
  expect(place.querySelector("[data-field=why] .field-error")!.textContent).toBe("is missing");
  await act(async () => root.unmount());
});

it("fills placeholders once, and keeps what others name", () => {
  expect(filled({ field: "{{number}}", label: "{{number}} of {{none}}", default: "{{who}}", pattern: "{{2}}" }, sample))
    .toEqual({ field: "{{number}}", label: "7 of ", default: { name: "Nordwerk" }, pattern: "{{2}}" });
  const filters = "{{who.name | upper}}: {{note | default('none') | truncate(3)}}, {{amount | round(1)}} {{list | join('-') | lower}} {{nothing | upper}}";
  expect(filled(filters, { ...sample, amount: 12.25, list: ["A", "B"] })).toBe("NORDWERK: no…, 12.3 a-b ");
  expect(filled("{{list | length}}", { list: [1, 2] })).toBe(2);
  // A field of the input, by its other name; a variable of that name comes first.
  expect(filled("{{input.number}} {{ input.who.name }}", sample)).toBe("7 Nordwerk");
  expect(filled("{{input.number}}", { ...sample, input: { number: 8 } })).toBe(8);
  expect(filled("{{list | first}} {{list | last}} {{who | json}}", { ...sample, list: [1, 2] })).toBe('1 2 {"name":"Nordwerk"}');
  expect(filled("{{text}}", { text: "{{number}}", number: 1 })).toBe("{{number}}");
  expect(["87%", 87, 0.87, "x", 300, "", null, true].map(confidenceOf)).toEqual([0.87, 0.87, 0.87, null, null, null, null, null]);
  expect(decisionsIn([], "Send")).toEqual([{ id: "submit", label: "Send", variant: "primary" }]);
});
