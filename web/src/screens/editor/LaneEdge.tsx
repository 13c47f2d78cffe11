/** An edge that passes nodes between its ends. */
import { BaseEdge, type Edge, type EdgeProps, getBezierPath } from "@xyflow/react";
import { BEND, lanePath } from "@/models/detour";

export type Lane = Edge<{ lane: number }, "lane">;
const LEAST = 48;

export function LaneEdge({ id, data, label, labelBgPadding, labelBgBorderRadius, markerEnd, ...ends }: EdgeProps<Lane>) {
  const isRoom = data !== undefined && ends.targetY - ends.sourceY > LEAST;
  const [straight, middleX, middleY] = getBezierPath(ends);
  const path = isRoom ? lanePath(ends, data.lane) : straight;
  const at = isRoom ? { labelX: data.lane, labelY: ends.sourceY + BEND } : { labelX: middleX, labelY: middleY };
  const marked = markerEnd === undefined ? {} : { markerEnd };
  return <BaseEdge id={id} path={path} label={label} {...at} {...marked} {...(labelBgPadding ? { labelBgPadding } : {})} {...(labelBgBorderRadius ? { labelBgBorderRadius } : {})} />;
}
