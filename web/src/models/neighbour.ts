/** Where keys lead from one node or row to another: one of them is reached by Tab, the others by arrows. */

export type Placed = { id: string; x: number; y: number; width: number; height: number };

const WAYS: Record<string, { x: number; y: number }> = { ArrowLeft: { x: -1, y: 0 }, ArrowRight: { x: 1, y: 0 }, ArrowUp: { x: 0, y: -1 }, ArrowDown: { x: 0, y: 1 } };
/** What lies aside of the way is farther than what lies on it. */
const ASIDE = 2;

/** The nearest one in the direction of the key; Home and End: the first and the last from above. null: the key leads nowhere. */
export function neighbour(nodes: readonly Placed[], from: string, key: string): string | null {
  if (key === "Home" || key === "End") return inReadingOrder(nodes).at(key === "Home" ? 0 : -1)?.id ?? null;
  const way = WAYS[key];
  const here = nodes.find((each) => each.id === from);
  if (!way || !here) return null;
  const start = middleOf(here);
  let best: { id: string; cost: number } | null = null;
  for (const each of nodes) {
    const { x, y } = middleOf(each);
    const along = (x - start.x) * way.x + (y - start.y) * way.y;
    const aside = Math.abs((x - start.x) * way.y) + Math.abs((y - start.y) * way.x);
    const cost = along + aside * ASIDE;
    if (each.id !== from && along > 1 && (best === null || cost < best.cost)) best = { id: each.id, cost };
  }
  return best?.id ?? null;
}

export function inReadingOrder<Node extends Placed>(nodes: readonly Node[]): Node[] {
  return nodes.toSorted((one, other) => one.y - other.y || one.x - other.x);
}

function middleOf({ x, y, width, height }: Placed): { x: number; y: number } {
  return { x: x + width / 2, y: y + height / 2 };
}

/** The place in a list after this key; null: the key does not move in lists. */
export function roved(key: string, at: number, count: number): number | null {
  const places: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 10, PageUp: at - 10, Home: 0, End: count - 1 };
  const next = Object.hasOwn(places, key) ? places[key]! : null;
  return next === null || count === 0 ? null : Math.min(count - 1, Math.max(0, next));
}
