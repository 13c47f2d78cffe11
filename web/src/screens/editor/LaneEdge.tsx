/** An edge that passes nodes between its ends, or leads up beside them. */
import { BaseEdge, type Edge, type EdgeProps, getBezierPath } from "@xyflow/react";
import { BEND, LOWEST, lanePath, loopPath } from "@/models/detour";

export type Lane = Edge<{ lane: number }, "lane">;
const LEAST = 48;

export function LaneEdge({ id, data, label, labelBgPadding, labelBgBorderRadius, markerEnd, ...ends }: EdgeProps<Lane>) {
  const { path, ...at } = drawn(ends, data?.lane);
  const marked = markerEnd === undefined ? {} : { markerEnd };
  return <BaseEdge id={id} path={path} label={label} {...at} {...marked} {...(labelBgPadding ? { labelBgPadding } : {})} {...(labelBgBorderRadius ? { labelBgBorderRadius } : {})} />;
}

type Ends = Parameters<typeof getBezierPath>[0];

function drawn(ends: Ends, lane: number | undefined): { path: string; labelX: number; labelY: number } {
  const down = ends.targetY - ends.sourceY;
  if (lane !== undefined && down <= 0) return { path: loopPath(ends, lane), labelX: (ends.sourceX + lane) / 2, labelY: ends.sourceY + LOWEST };
  if (lane !== undefined && down > LEAST) return { path: lanePath(ends, lane), labelX: lane, labelY: ends.sourceY + BEND };
  const [path, labelX, labelY] = getBezierPath(ends);
  return { path, labelX, labelY };
}
