/** The edges of a graph; those that were taken are thick. */
import { memo } from "react";
import type { GraphEdge } from "@/models/graph";

export const GraphEdges = memo(function GraphEdges({ edges, taken }: { edges: GraphEdge[]; taken: ReadonlySet<string> }) {
  return (
    <g aria-hidden="true">
      {edges.map((each) => {
        const key = `${each.source} ${each.target} ${each.id}`;
        return (
          <g key={key} className={`edge ${each.look} ${taken.has(key) ? "taken" : ""}`}>
            <path className="line" d={each.path} transform={`translate(${each.x} ${each.y})`} />
            <path className="head" d={`M${each.headX} ${each.headY}l-4.5 -8h9z`} />
            {each.label ? <text className="label" x={each.labelX} y={each.labelY + 4}>{each.label.slice(0, 40)}</text> : null}
          </g>
        );
      })}
    </g>
  );
});
