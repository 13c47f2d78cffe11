/** The inbox: views, rows and the hold that is read. The address says which. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useKeys } from "@/app/useKeys";
import { useRight } from "@/app/useSession";
import { Boundary } from "@/components/Boundary";
import { Forbidden, Notice } from "@/components/Problem";
import { SearchBox } from "@/components/SearchBox";
import { nextOf } from "@/models/decision";
import { between, toggled } from "@/models/selection";
import { type View, listViews } from "@/services/holds";
import { Bulk } from "./Bulk";
import { Detail } from "./Detail";
import { Rows } from "./Rows";
import { UndoBar, type Placed } from "./UndoBar";
import { ViewRail } from "./ViewRail";
import "./inbox.css";
import { type InboxSearch, TABS } from "./routes";
import { t } from "./text";
import { useHolds } from "./useHolds";
import { viewOf } from "./views";

const NOTHING: ReadonlySet<string> = new Set();

export function Screen() {
  const { view: name = "mine", hold = "" } = useParams({ strict: false });
  const mayRead = useRight("holds:read");
  const saved = useQuery({ queryKey: ["views"], queryFn: listViews, enabled: mayRead });
  if (!mayRead) return <Page><Forbidden right="holds:read" /></Page>;
  const known = viewOf(name);
  if (known !== null) return <Inbox name={name} view={known} savedQuery="" hold={hold} />;
  const own = saved.data?.find((each) => each.id === name);
  if (own) return <Inbox name={name} view={own.view} savedQuery={own.q} hold={hold} />;
  if (saved.isPending) return <Page><span /></Page>;
  // Older messages link to /inbox/HOLD.
  return <Inbox name="all" view="all" savedQuery="" hold={hold || name} />;
}

function Page({ children }: { children: React.ReactNode }) {
  return (
    <main id="main" tabIndex={-1} className="page">
      {children}
    </main>
  );
}

function Inbox({ name, view, savedQuery, hold }: { name: string; view: View; savedQuery: string; hold: string }) {
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const q = search.q ?? savedQuery;
  const tab = TABS.find((each) => each === search.tab) ?? "activity";
  const kept: InboxSearch = { ...(search.q ? { q: search.q } : {}), ...(tab === "activity" ? {} : { tab }) };
  const { query, rows, put, renewAll, refresh, fresh } = useHolds(view, q);
  const [placed, setPlaced] = useState<Placed | null>(null);
  const ids = rows.map((row) => row.id);
  const [selection, setSelection] = useState<{ list: string; chosen: ReadonlySet<string> }>({ list: "", chosen: NOTHING });
  const list = `${name} ${q}`;
  const chosen = selection.list === list ? selection.chosen : NOTHING;
  const [told, setTold] = useState("");
  const choose = (next: ReadonlySet<string>) => {
    setSelection({ list, chosen: next });
    setTold("");
  };
  const [bulkRound, setBulkRound] = useState(0);

  const open = (id: string) => void navigate({ to: "/inbox/$view/$hold", params: { view: name, hold: id }, search: kept });
  const close = () => void navigate({ to: "/inbox/$view", params: { view: name }, search: kept });
  const find = (next: string) => void navigate({ to: "/inbox/$view", params: { view: name }, search: next ? { q: next } : {} });
  const move = (by: number) => {
    const place = hold ? ids.indexOf(hold) + by : 0;
    const next = ids[Math.max(0, Math.min(ids.length - 1, place))];
    if (next) open(next);
    return next ?? "";
  };
  const extend = (by: number) => {
    const from = hold;
    const to = move(by);
    choose(new Set([...chosen, ...between(ids, from || to, to).filter((id) => isOpen(rows, id))]));
  };
  const clear = () => {
    choose(NOTHING);
    setBulkRound(bulkRound + 1);
  };
  useKeys([
    { keys: "x", group: t("select"), label: t("keySelect"), run: () => (isOpen(rows, hold) ? choose(toggled(chosen, hold)) : undefined) },
    { keys: "J", group: t("select"), label: t("keySelectNext"), run: () => extend(1) },
    { keys: "K", group: t("select"), label: t("keySelectBefore"), run: () => extend(-1) },
    { keys: "j", group: t("title"), label: t("keyNext"), run: () => void move(1) },
    { keys: "k", group: t("title"), label: t("keyBefore"), run: () => void move(-1) },
    { keys: "u", group: t("title"), label: t("keyBack"), run: close },
    { keys: "/", group: t("title"), label: t("keySearch"), run: () => document.getElementById("inbox-search")?.focus() },
  ]);

  return (
    <main id="main" tabIndex={-1} className={`inbox ${hold ? "has-hold" : ""}`}>
      <h1 className="away">{t("title")}</h1>
      <ViewRail current={name} view={view} q={q} />
      <section className="list" aria-label={t("list")}>
        <SearchBox key={`${name} ${q}`} id="inbox-search" q={q} label={t("search")} example={t("searchExample")} onSearch={find} />
        {fresh > 0 ? (
          <button type="button" className="button fresh" onClick={() => void refresh()}>
            {t("fresh", { count: fresh })}
          </button>
        ) : null}
        {chosen.size > 0 ? (
          <Bulk
            key={`${list} ${bulkRound}`}
            holds={rows.filter((row) => chosen.has(row.id))}
            onClear={clear}
            onDone={(left, said) => {
              choose(new Set(left));
              setTold(left.length === 0 ? said : "");
              void renewAll([...chosen]);
            }}
          />
        ) : told ? <output className="bulk">{told}</output> : null}
        <Rows query={query} rows={rows} view={view} q={q} current={hold} chosen={chosen} onChoose={(id) => choose(toggled(chosen, id))} onOpen={open} onRefresh={refresh} />
      </section>
      <section className="detail" aria-label={t("detail")}>
        {hold ? (
          <Boundary resetKey={hold}>
            <Detail
              key={hold}
              id={hold}
              tab={tab}
              onBack={close}
              onChanged={put}
              onPlaced={(done) => {
                setPlaced(done);
                put(done.hold);
                const next = nextOf(ids.filter((id) => id === hold || isOpen(rows, id)), hold);
                if (next && next !== hold) open(next);
              }}
            />
          </Boundary>
        ) : (
          <Notice title={t("nothingOpen")} hint={rows.length > 0 ? t("nothingOpenHint") : ""} />
        )}
      </section>
      <UndoBar
        placed={placed}
        onUndone={(restored) => {
          setPlaced(null);
          put(restored);
          open(restored.id);
        }}
        onOver={() => setPlaced(null)}
      />
    </main>
  );
}

function isOpen(rows: { id: string; status: string; placedUntil: string | null }[], id: string): boolean {
  const row = rows.find((each) => each.id === id);
  return row !== undefined && row.status === "pending" && row.placedUntil === null;
}
