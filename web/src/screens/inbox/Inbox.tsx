/** Views, rows and the hold that is read. The address says which. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useSession } from "@/app/useSession";
import { Boundary } from "@/components/Boundary";
import { Notice } from "@/components/Problem";
import { SearchBox } from "@/components/SearchBox";
import { searchProblem } from "@/components/searchProblem";
import { serverNow } from "@/components/useNow";
import { useTitle } from "@/components/useTitle";
import { nextOf } from "@/models/decision";
import { repaired } from "@/models/query";
import { readHoldQuery } from "@/models/queryHolds";
import { type Hold, type View } from "@/services/holds";
import { Bulk } from "./Bulk";
import { Chips } from "./Chips";
import { Detail } from "./Detail";
import { type InboxSearch, TABS } from "./routes";
import { Rows } from "./Rows";
import { SnoozeBar, type Snoozed } from "./SnoozeBar";
import { t } from "./text";
import { UndoBar, type Decided, type Placed } from "./UndoBar";
import { useHolds } from "./useHolds";
import { focusTitle, useInboxKeys } from "./useInboxKeys";
import { useSelection } from "./useSelection";
import { ViewRail } from "./ViewRail";

type InboxProps = { name: string; title: string; view: View; savedQuery: string; hold: string };

export function Inbox({ name, title, view, savedQuery, hold }: InboxProps) {
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const { person } = useSession();
  useTitle(hold ? null : [title, t("title")]);
  const q = search.q ?? savedQuery;
  const read = (text: string) => readHoldQuery(text, person, BigInt(Math.round(serverNow())) * 1000n);
  const asked = read(q);
  // A search with a wrong word does not replace the list that is shown.
  const [good, setGood] = useState({ name, q: asked.wrong ? savedQuery : q });
  const listed = asked.wrong ? (good.name === name ? good.q : savedQuery) : q;
  if (!asked.wrong && (good.name !== name || good.q !== q)) setGood({ name, q });
  const tab = TABS.find((each) => each === search.tab) ?? "activity";
  const kept: InboxSearch = { ...(search.q ? { q: search.q } : {}), ...(tab === "activity" ? {} : { tab }) };
  const { query, rows, above, put, renewAll, refresh, fresh, gone } = useHolds(view, listed);
  const [placed, setPlaced] = useState<Placed | null>(null);
  const [snoozed, setSnoozed] = useState<Snoozed | null>(null);
  const [focus, setFocus] = useState({ row: "", round: 0 });
  const selection = useSelection(`${name} ${listed}`, rows);

  const open = (id: string) => void navigate({ to: "/inbox/$view/$hold", params: { view: name, hold: id }, search: kept });
  const openRow = (id: string) => {
    open(id);
    setFocus((old) => ({ row: id, round: old.round + 1 }));
  };
  const close = () => {
    void navigate({ to: "/inbox/$view", params: { view: name }, search: kept });
    if (hold) setFocus((old) => ({ row: hold, round: old.round + 1 }));
  };
  const find = (next: string) => void navigate({ to: "/inbox/$view", params: { view: name }, search: next ? { q: next } : {} });
  const { move } = useInboxKeys({ rows, hold, selection, openRow, close });
  const advance = (done: Decided) => {
    put(done.hold);
    setSnoozed(null);
    setPlaced({ ids: [done.hold.id], until: done.hold.placedUntil, label: done.label });
    const next = nextOf(rows.filter((row) => row.id === hold || isOpen(row)).map((row) => row.id), hold);
    if (next && next !== hold) openRow(next);
    else requestAnimationFrame(focusTitle);
  };

  return (
    <main id="main" tabIndex={-1} className={`inbox ${hold ? "has-hold" : ""}`}>
      <h1 className="away">{t("title")}</h1>
      <ViewRail current={name} view={view} q={q} />
      <section className="list" aria-label={t("list")} data-part="work">
        <SearchBox
          key={`${name} ${q}`}
          id="inbox-search"
          q={q}
          label={t("search")}
          example={t("searchExample")}
          problemOf={(text) => searchProblem(read(text).wrong)}
          meantBy={(text) => repaired(text, read(text).wrong)}
          onSearch={find}
        />
        <Chips q={listed} read={read(listed)} onSearch={find} />
        {fresh > 0 ? (
          <button type="button" className="button fresh" onClick={() => void refresh()}>
            {t("fresh", { count: fresh })}
          </button>
        ) : null}
        <Rows
          query={query}
          rows={rows}
          above={above}
          view={view}
          q={listed}
          current={hold}
          focus={focus}
          gone={gone}
          chosen={selection.ids}
          onChoose={selection.choose}
          onOpen={open}
          onMove={move}
          onClear={() => find("")}
          onRefresh={refresh}
        />
        {/* Below the rows, which stay where they are under the pointer. */}
        {selection.chosen.length > 0 ? (
          <Bulk
            key={selection.round}
            holds={selection.chosen}
            onClear={selection.clear}
            onDone={(left, said, done) => {
              const all = selection.chosen.map((each) => each.id);
              selection.keep(left, said);
              setSnoozed(null);
              setPlaced(done);
              void renewAll(all);
            }}
          />
        ) : selection.summary ? <output className="bulk">{selection.summary}</output> : null}
      </section>
      <section className="detail" aria-label={t("detail")} data-part="detail">
        {hold ? (
          <Boundary resetKey={hold}>
            <Detail key={hold} id={hold} tab={tab} onBack={close} onChanged={put} onPlaced={advance} onSnoozed={setSnoozed} />
          </Boundary>
        ) : rows.length > 0 ? (
          <Notice title={t("nothingOpen")} hint={t("nothingOpenHint")} />
        ) : null}
      </section>
      <div className="toasts">
        {snoozed ? (
          <SnoozeBar
            key={`${snoozed.hold} ${snoozed.until.getTime()}`}
            snoozed={snoozed}
            onUndone={() => {
              setSnoozed(null);
              openRow(snoozed.hold);
            }}
            onOver={() => setSnoozed(null)}
          />
        ) : null}
        <UndoBar
          placed={placed}
          onUndone={(restored) => {
            setPlaced(null);
            for (const each of restored) put(each);
            // What was said of them is not true any more.
            selection.reset();
            if (restored[0]) openRow(restored[0].id);
          }}
          onOver={() => setPlaced(null)}
        />
      </div>
    </main>
  );
}

function isOpen(row: Hold): boolean {
  return row.status === "pending" && row.placedUntil === null;
}
