/** Filters of placeholders, as `template_filters` has them: `{{customer | upper}}`. */
import { MISSING, isMapping, isNumeric } from "./conditionValues";
import { writeJson } from "./json";

type Argument = string | number | boolean | null;
const FILTER = /\|\s*([a-z]+)\s*(?:\(((?:[^'"()]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*)\))?/g;
const ARGUMENT = /'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|[^\s,]+/g;

export function asText(value: unknown): string {
  return value === MISSING || value === null || value === undefined ? "" : typeof value === "string" ? value : writeJson(value);
}

/** `filters`: the text from the first `|` on. A filter that does not apply to the sample shows the value as it is. */
export function filtered(value: unknown, filters: string): unknown {
  for (const [, name = "", given] of filters.matchAll(FILTER)) {
    if (value === MISSING && name !== "default") return MISSING;
    value = (Object.hasOwn(FILTERS, name) ? FILTERS[name]! : same)(value, ...argumentsOf(given ?? ""));
  }
  return value;
}

function argumentsOf(text: string): Argument[] {
  return [...text.matchAll(ARGUMENT)].map(([whole, single, double]) => {
    const quoted = single ?? double;
    if (quoted !== undefined) return quoted.replace(/\\(.)/g, "$1");
    if (whole === "true" || whole === "false") return whole === "true";
    return whole === "null" ? null : Number(whole);
  });
}

const same = (value: unknown): unknown => value;
const FILTERS: Readonly<Record<string, (value: unknown, ...given: Argument[]) => unknown>> = {
  default: (value, other) => (value === MISSING || value === null ? other : value),
  upper: (value) => asText(value).toUpperCase(),
  lower: (value) => asText(value).toLowerCase(),
  trim: (value) => asText(value).trim(),
  length: (value) => (typeof value === "string" ? [...value].length : Array.isArray(value) ? value.length : isMapping(value) ? Object.keys(value).length : value),
  first: (value) => itemOf(value, 0),
  last: (value) => itemOf(value, -1),
  join: (value, between = ", ") => (Array.isArray(value) ? value.map(asText).join(String(between)) : value),
  json: (value) => writeJson(value),
  round: (value, digits = 0) => (isNumeric(value) ? rounded(Number(value), Number(digits)) : value),
  date: (value) => (typeof value === "string" && /^\d{4}-\d{2}-\d{2}/.test(value) ? value.slice(0, 10) : value),
  truncate: (value, most = 0, end = "…") => truncated([...asText(value)], Number(most), String(end)),
};

function itemOf(value: unknown, place: number): unknown {
  if (typeof value !== "string" && !Array.isArray(value)) return value;
  const items: unknown[] = typeof value === "string" ? [...value] : value;
  return items.length > 0 ? items.at(place) : MISSING;
}

/** Half away from zero, as people round money. */
function rounded(value: number, digits: number): number {
  const factor = 10 ** digits;
  return (Math.sign(value) * Math.round(Math.abs(value) * factor + Number.EPSILON)) / factor;
}

function truncated(text: string[], most: number, end: string): string {
  if (text.length <= most) return text.join("");
  return text.slice(0, Math.max(0, most - end.length)).join("") + end.slice(0, most);
}
