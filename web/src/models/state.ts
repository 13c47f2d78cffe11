/** What changed between two states, by path. */

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
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  return [{ path, before, after, kind: "changed" }];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
