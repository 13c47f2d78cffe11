/** The graph of a version, on which nodes are picked. Loaded when it is opened; a list beside it has the same. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { isLost } from "@/components/isLost";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { NOTHING } from "@/models/canvasSelection";
import { Canvas } from "./Canvas";
import type { Marks } from "./drawnGraph";
import "./editor.css";
import { loadGraph } from "./loadGraph";

type PickerProps = { flow: string; version: string; chosen: string[]; onPick: (node: string) => void };
const PLAIN: Marks = { states: new Map(), taken: new Set(), problems: new Map(), errors: new Set(), edgeProblems: new Set() };

export function GraphPicker({ flow, version, chosen, onPick }: PickerProps) {
  const loaded = useQuery({ queryKey: ["flows", "view", flow, version], queryFn: () => loadGraph(flow, version), staleTime: Number.POSITIVE_INFINITY });
  const view = useMemo(() => loaded.data && { ...loaded.data, nodes: loaded.data.nodes.map((each) => ({ ...each, isBreakpoint: chosen.includes(each.id) })) }, [loaded.data, chosen]);
  if (isLost(loaded)) return <Problem error={loaded.error} onRetry={() => void loaded.refetch()} />;
  if (!view) return <Skeleton />;
  return (
    <div className="graph-picker">
      <Canvas name={flow} view={view} marks={PLAIN} selection={NOTHING} onSelect={({ nodes }) => nodes[0] && onPick(nodes[0])} />
    </div>
  );
}
