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

/** What of it the canvas still has: undo and the text take nodes and edges away. The same object if all of it. */
export function still(old: Selection, view: { nodes: readonly { id: string }[]; edges: readonly { id: string }[] }): Selection {
  const nodes = old.nodes.filter((id) => view.nodes.some((each) => each.id === id));
  const edges = old.edges.filter((id) => view.edges.some((each) => each.id === id));
  return nodes.length + edges.length === old.nodes.length + old.edges.length ? old : { nodes, edges };
}
