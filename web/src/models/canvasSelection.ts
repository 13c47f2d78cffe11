/** What is selected on a canvas. React Flow reports nodes and edges apart, in any order. */
export type Selection = { nodes: string[]; edges: string[] };
export const NOTHING: Selection = { nodes: [], edges: [] };
type Change = { id: string; selected: boolean };

/** Nodes that are selected leave no edge selected; nodes that are left do not touch the edges. */
export function withNodes(old: Selection, changes: readonly Change[]): Selection {
  const nodes = new Set(old.nodes);
  for (const each of changes) nodes[each.selected ? "add" : "delete"](each.id);
  return { nodes: [...nodes], edges: nodes.size > 0 ? [] : old.edges };
}

/** One edge at a time, and no node with it. */
export function withEdges(old: Selection, changes: readonly Change[]): Selection {
  const chosen = changes.find((each) => each.selected);
  return chosen ? { nodes: [], edges: [chosen.id] } : old;
}
