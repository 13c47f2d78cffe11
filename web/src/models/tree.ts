/** A value as the rows of a tree: opened by path, searched, with what changed. */
import { readJson } from "./json";
import { type Changed, changesBetween } from "./state";

export type TreeRow = {
  path: string;
  name: string;
  depth: number;
  value: unknown;
  /** How many it has inside; null: it is no list and no object. */
  size: number | null;
  open: boolean;
  change: Changed["kind"] | "inside" | null;
  before: unknown;
};
export type TreeView = { toggled: ReadonlySet<string>; search: string; changes: readonly Changed[] };

const OPEN_UNTIL = 1;

export function treeOf(value: unknown, view: TreeView): TreeRow[] {
  const search = view.search.trim().toLowerCase();
  const changed = new Map<string, Changed>();
  // Each change is looked at once, not once for each row.
  const around = new Set<string>();
  for (const each of view.changes) {
    const { path } = each;
    changed.set(path, each);
    for (let dot = path.indexOf("."); dot >= 0; dot = path.indexOf(".", dot + 1)) around.add(path.slice(0, dot));
  }
  const rows: TreeRow[] = [];
  const visit = (name: string, each: unknown, path: string, depth: number, isFound: boolean): boolean => {
    const inside = entriesOf(each);
    const matches = isFound || search === "" || name.toLowerCase().includes(search) || leafText(each).toLowerCase().includes(search);
    const change = changed.get(path) ?? null;
    const holds = change === null && around.has(path);
    const opensItself = depth < OPEN_UNTIL || holds || search !== "";
    const row: TreeRow = {
      path, name, depth, value: each, size: inside ? inside.length : null,
      open: inside !== null && opensItself !== view.toggled.has(path),
      change: change?.kind ?? (holds ? "inside" : null), before: change?.before,
    };
    const place = rows.push(row) - 1;
    let kept = matches;
    if (inside && row.open) {
      for (const [key, child] of inside) if (visit(key, child, path ? `${path}.${key}` : key, depth + 1, matches && search !== "")) kept = true;
    }
    if (!kept) rows.length = place;
    return kept;
  };
  for (const [key, child] of entriesOf(value) ?? [["", value] as [string, unknown]]) visit(key, child, key, 0, false);
  return rows;
}

export function changesOf(before: unknown, after: unknown): Changed[] {
  return before === undefined ? [] : changesBetween(before, after);
}

function entriesOf(value: unknown): [string, unknown][] | null {
  return typeof value === "object" && value !== null ? Object.entries(value) : null;
}

function leafText(value: unknown): string {
  return typeof value === "object" && value !== null ? "" : String(value);
}

export type Patch = { scratch: Record<string, unknown>; removed: string[] };

/** What a fork has to be given so that its state is the edited one: whole values of the keys that differ. */
export function patchOf(before: unknown, after: unknown): Patch {
  const old = isObject(before) ? before : {};
  const next = isObject(after) ? after : {};
  const scratch = Object.fromEntries(Object.entries(next).filter(([key, value]) => JSON.stringify(old[key]) !== JSON.stringify(value)));
  return { scratch, removed: Object.keys(old).filter((key) => !Object.hasOwn(next, key)) };
}

/** An object, or null if the text is none. */
export function objectIn(text: string): Record<string, unknown> | null {
  try {
    const found: unknown = readJson(text);
    return isObject(found) ? found : null;
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
