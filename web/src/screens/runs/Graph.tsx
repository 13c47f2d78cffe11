/** The graph of a run at a record, as a picture that can be moved or as a list. A node opens its last step. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useKeys } from "@/app/useKeys";
import { isLost } from "@/components/isLost";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { type NodeFact, factsAt, isTaken } from "@/models/graph";
import { toggled } from "@/models/selection";
import type { Point } from "@/models/timeline";
import { type Timeline, getGraph } from "@/services/runHistory";
import type { Run } from "@/services/runs";
import { GraphList } from "./GraphList";
import { GraphView } from "./GraphView";
import { t } from "./text";
import { useInside } from "./Timeline";

type GraphProps = { run: Run; found: Timeline; point: Point | null; step: number };
export type GraphState = { facts: ReadonlyMap<string, NodeFact>; taken: ReadonlySet<string>; shown: string; onOpen: (node: string) => void; onToggle: (node: string) => void };

export function Graph({ run, found, point, step }: GraphProps) {
  const navigate = useNavigate();
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [asList, setAsList] = useState(false);
  const paths = [...open].toSorted();
  // A version never changes, so neither does its layout.
  const graph = useQuery({ queryKey: ["graph", run.flow, run.version, ...paths], queryFn: () => getGraph(run.id, paths), staleTime: Number.POSITIVE_INFINITY, placeholderData: (old) => old });
  const within = found.visits.filter((each) => open.has(each.path) && each.inside !== null).map((each) => each.inside!.within);
  const { inside, error, retry } = useInside(run.id, within);
  const visits = useMemo(() => [...found.visits, ...[...inside.values()].flat()], [found.visits, inside]);
  const facts = useMemo(() => factsAt(visits, point, graph.data?.flat ?? false), [visits, point, graph.data?.flat]);
  const shown = useMemo(() => visits.find((each) => each.seq === step && step >= 0)?.path ?? "", [visits, step]);
  const taken = useMemo(() => new Set((graph.data?.picture.edges ?? []).filter((each) => isTaken(each, found.taken, facts)).map((each) => `${each.source} ${each.target} ${each.id}`)), [graph.data, found.taken, facts]);
  useKeys([
    { keys: "ArrowUp ArrowDown ArrowLeft ArrowRight", group: t("graph"), label: t("keysNodes") },
    { keys: "Home End", group: t("graph"), label: t("keysEnds") },
    { keys: "Enter", group: t("graph"), label: t("keysOpen") },
  ]);
  // The same until something of it changes: a large graph is drawn anew with it.
  const state: GraphState = useMemo(
    () => ({
      facts, taken, shown,
      onToggle: (node) => setOpen((old) => toggled(old, node)),
      onOpen: (node) => {
        const seq = facts.get(node)?.seq ?? -1;
        if (seq >= 0) void navigate({ to: ".", search: (old: object) => ({ ...old, step: seq }), resetScroll: false });
      },
    }),
    [facts, taken, shown, navigate],
  );
  if (graph.isPending) return <Skeleton />;
  if (isLost(graph)) return <Problem error={graph.error} onRetry={() => void graph.refetch()} />;
  return (
    <section className="run-graph panel" aria-label={t("graph")} data-part="work">
      <div className="graph-choice">
        <button type="button" className="button quiet" aria-pressed={!asList} onClick={() => setAsList(false)}>{t("asGraph")}</button>
        <button type="button" className="button quiet" aria-pressed={asList} onClick={() => setAsList(true)}>{t("asList")}</button>
      </div>
      {error === null ? null : <Problem error={error} onRetry={retry} />}
      {asList ? <GraphList picture={graph.data.picture} state={state} /> : <GraphView key={run.id} picture={graph.data.picture} state={state} />}
    </section>
  );
}
