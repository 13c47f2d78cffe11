/** A form with sample data in place of its placeholders. */
import { MISSING, isMapping, resolverOf } from "./conditionValues";
import { asText, filtered } from "./textFilters";
import { type Choice, decisionLabel, sectionOf } from "./formSection";

const PLACEHOLDER = /\{\{\s*([\w.]+)([^}]*)\}\}/g;
/** Never templates: other parts of the document name them. */
const FIXED = new Set(["type", "field", "kind", "id", "variant", "visible_if", "required_if", "readonly_if", "pattern", "schema"]);

export function filled(value: unknown, sample: Readonly<Record<string, unknown>>): unknown {
  if (typeof value === "string") return filledText(value, sample);
  if (Array.isArray(value)) return value.map((each) => filled(each, sample));
  if (!isMapping(value)) return value;
  const found = Object.fromEntries(Object.entries(value).map(([name, each]) => [name, FIXED.has(name) ? each : filled(each, sample)]));
  const sure = isMapping(found["extras"]) ? confidenceOf(found["extras"]["confidence"]) : null;
  return sure === null ? found : { ...found, confidence: sure };
}

/** A text that is one placeholder becomes the value itself. */
function filledText(text: string, sample: Readonly<Record<string, unknown>>): unknown {
  // As in a run: `input.amount` is the field amount of the input.
  const resolve = resolverOf({ input: sample, ...sample });
  const valueOf = (path: string, filters: string): unknown => filtered(resolve(path.split(".")), filters);
  const only = /^\{\{\s*([\w.]+)([^}]*)\}\}$/.exec(text);
  const found = only ? valueOf(only[1]!, only[2]!) : MISSING;
  if (only) return found === MISSING ? "" : found;
  return text.replaceAll(PLACEHOLDER, (_, path: string, filters: string) => asText(valueOf(path, filters)));
}

/** 0..1 from 0.87, 87, "87%" or "0.87"; null: it is not shown. */
export function confidenceOf(given: unknown): number | null {
  if (typeof given !== "number" && typeof given !== "string") return null;
  const text = String(given).trim();
  const number = text === "" ? Number.NaN : Number(text.replace(/%$/, ""));
  const share = text.endsWith("%") || number > 1 ? number / 100 : number;
  return share >= 0 && share <= 1 ? share : null;
}

/** The buttons: the options of the first decision, else one that submits. */
export function decisionsIn(sections: readonly unknown[], submit: string): (Choice & { variant: string })[] {
  const first = sections.filter(isMapping).find((each) => each["type"] === "decision");
  if (!first) return [{ id: "submit", label: submit, variant: "primary" }];
  const given = Array.isArray(first["options"]) ? first["options"] : [];
  return sectionOf(first).options.map((each, place) => ({
    ...each, label: decisionLabel(each), variant: isMapping(given[place]) ? String(given[place]["variant"] ?? "") : "",
  }));
}
