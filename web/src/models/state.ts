/** What changed between two states, by path. */
import { writeJson } from "./json";

export type Changed = { path: string; before: unknown; after: unknown; kind: "added" | "removed" | "changed" };

export function changesBetween(before: unknown, after: unknown, path = ""): Changed[] {
  if (Object.is(before, after)) return [];
  if (isRecord(before) && isRecord(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap((name) => {
      const place = path ? `${path}.${name}` : name;
      if (!Object.hasOwn(before, name)) return [{ path: place, before: undefined, after: after[name], kind: "added" as const }];
      if (!Object.hasOwn(after, name)) return [{ path: place, before: before[name], after: undefined, kind: "removed" as const }];
      return changesBetween(before[name], after[name], place);
    });
  }
  if (writeJson(before) === writeJson(after)) return [];
  return [{ path, before, after, kind: "changed" }];
}

/** What the values of a state are, so that they can be edited as fields. What has no plain form is JSON. */
export function schemaFor(value: unknown): Record<string, unknown> {
  if (typeof value === "string") return { type: "string", default: value };
  if (typeof value === "boolean") return { type: "boolean", default: value };
  if (typeof value === "bigint" || Number.isInteger(value)) return { type: "integer", default: value };
  if (typeof value === "number") return { type: "number", default: value };
  if (Array.isArray(value)) return { type: "array", items: itemSchema(value), default: value };
  if (!isRecord(value)) return { default: value };
  return { type: "object", properties: Object.fromEntries(Object.entries(value).map(([name, each]) => [name, schemaFor(each)])) };
}

/** Of a list whose items have one plain type; any other is JSON. */
function itemSchema(list: readonly unknown[]): Record<string, unknown> {
  const types = new Set(list.map((each) => schemaFor(each)["type"]));
  const [type] = types;
  return types.size === 1 && type !== "object" && type !== "array" && type !== undefined ? { type } : {};
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
