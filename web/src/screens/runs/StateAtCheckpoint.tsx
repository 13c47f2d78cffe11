/** The state at a record as a tree that can be searched, with what changed there. */
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { PASSING } from "@/app/query";
import { Icon } from "@/components/Icon";
import { isLost } from "@/components/isLost";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { Leaf } from "@/components/Value";
import { changesBetween } from "@/models/state";
import { type TreeRow, treeOf } from "@/models/tree";
import { plainText } from "@/models/values";
import { getStateAt } from "@/services/runHistory";
import { shortText, t } from "./text";

const MOST_ROWS = 500;
type StateProps = { run: string; record: number; before: number };

/** `before`: the record with which it is compared. */
export function StateAtCheckpoint({ run, record, before }: StateProps) {
  const [search, setSearch] = useState("");
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const forever = { staleTime: Number.POSITIVE_INFINITY, gcTime: PASSING };
  const state = useQuery({ queryKey: ["state", run, record], queryFn: () => getStateAt(run, String(record)), retry: false, placeholderData: (old) => old, ...forever });
  const earlier = useQuery({ queryKey: ["state", run, before], queryFn: () => getStateAt(run, String(before)), enabled: before < record, retry: false, ...forever });
  const now = state.data?.state;
  const then = earlier.data?.state;
  const changes = useMemo(() => (then === undefined ? [] : changesBetween(then, now)), [then, now]);
  const rows = useMemo(() => treeOf(now, { toggled, search, changes }), [now, toggled, search, changes]);
  const gone = useMemo(() => changes.filter((each) => each.kind === "removed"), [changes]);
  if (state.isPending) return <Skeleton rows={3} />;
  if (isLost(state)) return <UnreadableState error={state.error} onRetry={() => void state.refetch()} />;
  const toggle = (path: string) => setToggled((old) => (old.has(path) ? new Set([...old].filter((each) => each !== path)) : new Set([...old, path])));
  return (
    <section className="panel state" aria-label={t("state")}>
      <p className="state-head">
        <input type="search" className="state-search" aria-label={t("searchState")} placeholder={t("searchState")} value={search} onChange={(event) => setSearch(event.target.value)} />
        <span className="muted small">{t("changedKeys", { count: changes.length })}</span>
      </p>
      {rows.length === 0 ? <p className="muted">{search ? t("noKey") : t("emptyState")}</p> : null}
      <ul className="tree">
        {rows.slice(0, MOST_ROWS).map((row) => <TreeLine key={row.path} row={row} onToggle={() => toggle(row.path)} />)}
      </ul>
      {rows.length > MOST_ROWS ? <p className="muted small">{t("moreRows", { count: rows.length - MOST_ROWS })}</p> : null}
      {gone.slice(0, MOST_ROWS).map((each) => (
        <p key={each.path} className="small"><span className="code">{plainText(each.path)}</span> <del>{shortText(each.before, 200)}</del></p>
      ))}
      {gone.length > MOST_ROWS ? <p className="muted small">{t("moreGone", { count: gone.length - MOST_ROWS })}</p> : null}
    </section>
  );
}

/** Other records may be readable: the slider and the list of visits stay. */
function UnreadableState({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  return (
    <section className="panel" aria-label={t("state")}>
      <Problem error={error} onRetry={onRetry} />
      <p className="muted small state-note">{t("otherRecords")}</p>
    </section>
  );
}

const CHANGES = { added: "added", changed: "changed", removed: "removed", inside: "changedInside" } as const;

function TreeLine({ row, onToggle }: { row: TreeRow; onToggle: () => void }) {
  const isWhole = row.change !== null && row.change !== "inside";
  return (
    <li className={isWhole ? "tree-changed" : ""} style={{ paddingInlineStart: `${row.depth * 20 + 8}px` }}>
      {row.size === null ? (
        <span className="tree-name code">{plainText(row.name)}</span>
      ) : (
        <button type="button" className="tree-name tree-toggle code" aria-expanded={row.open} onClick={onToggle}>
          <Icon name="arrow" />
          {plainText(row.name)}
        </button>
      )}
      <span className="tree-value">
        {row.size === null ? <Leaf value={row.value} /> : <span className="muted small">{t("inside", { count: row.size })}</span>}
        {row.change === "changed" ? <span className="small"> <del>{shortText(row.before, 200)}</del></span> : null}
      </span>
      {row.change === null ? null : <span className={`badge ${isWhole ? "role-running" : ""}`}>{t(CHANGES[row.change])}</span>}
    </li>
  );
}
