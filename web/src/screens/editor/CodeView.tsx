/** A flow of code: its graph and its live runs, read only. */
import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { isLost } from "@/components/isLost";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { NOTHING } from "@/models/canvasSelection";
import { Canvas } from "./Canvas";
import type { Marks } from "./drawnGraph";
import { LiveRuns } from "./LiveRuns";
import { loadGraph } from "./loadGraph";
import { t } from "./text";
import { useRunStates } from "./useRunStates";

export function CodeView({ name }: { name: string }) {
  const { run = "" } = useSearch({ strict: false });
  const loaded = useQuery({ queryKey: ["flows", "view", name, "latest"], queryFn: () => loadGraph(name, "latest"), staleTime: Number.POSITIVE_INFINITY });
  const [selection, setSelection] = useState(NOTHING);
  const { states, taken } = useRunStates(run);
  const marks = useMemo<Marks>(() => ({ states, taken, problems: new Map(), errors: new Set(), edgeProblems: new Set() }), [states, taken]);
  if (loaded.isPending) return <Skeleton />;
  if (isLost(loaded)) return <Problem error={loaded.error} onRetry={() => void loaded.refetch()} />;
  return (
    <>
      <header className="editor-bar">
        <Link to="/flows/$name" params={{ name }} className="small">
          {t("flows")}
        </Link>
        <h1>{name}</h1>
        <span className="muted small">{t("readOnly")}</span>
      </header>
      <div className="editor-body without-palette">
        <Canvas name={name} view={loaded.data} marks={marks} selection={selection} onSelect={setSelection} />
        <aside className="editor-panel" aria-label={t("liveRuns")}>
          <h2 className="panel-title">{t("liveRuns")}</h2>
          <LiveRuns flow={name} shown={run} />
        </aside>
      </div>
    </>
  );
}
