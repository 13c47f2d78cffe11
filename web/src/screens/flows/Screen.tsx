/** The list of flows, with their live runs. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useKeys } from "@/app/useKeys";
import { useRight } from "@/app/useSession";
import { isLost } from "@/components/isLost";
import { Forbidden, Notice, Problem } from "@/components/Problem";
import { SearchBox } from "@/components/SearchBox";
import { Skeleton } from "@/components/Skeleton";
import { useTitle } from "@/components/useTitle";
import { Text } from "@/components/Value";
import { type Flow, listFlows } from "@/services/flows";
import { word } from "@/words";
import { Drafts, NewDocument } from "./Drafts";
import "./flows.css";
import { LiveRuns } from "./LiveRuns";
import { t } from "./text";
import { currentOf, matches, versionName } from "./versions";

const SHOWN = 50;

export function Screen() {
  const mayRead = useRight("flows:read");
  useTitle([t("title")]);
  const mayEdit = useRight("flows:write");
  const [isNew, setNew] = useState(false);
  return (
    <main id="main" tabIndex={-1} className="page">
      <header className="flow-line">
        <h1>{t("title")}</h1>
        {mayRead && mayEdit ? (
          <button type="button" className="button flow-start" aria-expanded={isNew} onClick={() => setNew(!isNew)}>
            {t("newDocument")}
          </button>
        ) : null}
      </header>
      {mayRead ? (
        <>
          {isNew ? <NewDocument /> : null}
          <Drafts />
          <FlowList />
        </>
      ) : (
        <Forbidden right="flows:read" />
      )}
    </main>
  );
}

function FlowList() {
  const { q = "" } = useSearch({ strict: false });
  const navigate = useNavigate();
  const [most, setMost] = useState(SHOWN);
  const flows = useQuery({ queryKey: ["flows", "list"], queryFn: listFlows });
  useKeys([{ keys: "/", group: t("title"), label: t("search"), run: () => document.getElementById("flows-search")?.focus() }]);
  if (flows.isPending) return <Skeleton />;
  if (isLost(flows)) return <Problem error={flows.error} onRetry={() => void flows.refetch()} />;
  if (flows.data.length === 0) return <Notice title={t("empty")} hint={t("emptyHint")} />;
  const find = (text: string) => void navigate({ to: "/flows", search: text ? { q: text } : {} });
  const found = flows.data.filter((each) => matches(each, q));
  return (
    <>
      <SearchBox key={q} id="flows-search" q={q} label={t("search")} example={t("searchExample")} onSearch={find} />
      {found.length === 0 ? (
        <Notice title={t("noMatch")} hint={t("noMatchHint", { q })}>
          <button type="button" className="button" onClick={() => find("")}>
            {t("clear")}
          </button>
        </Notice>
      ) : (
        <ul className="flow-list panel" aria-label={t("title")}>
          {found.slice(0, most).map((flow) => (
            <Row key={flow.name} flow={flow} />
          ))}
        </ul>
      )}
      {found.length > most ? (
        <button type="button" className="button" onClick={() => setMost(most + SHOWN)}>
          {t("more", { count: found.length - most })}
        </button>
      ) : null}
    </>
  );
}

function Row({ flow }: { flow: Flow }) {
  const mayStart = useRight("runs:write");
  const current = currentOf(flow);
  return (
    <li className="flow-row">
      <div className="flow-about">
        <Link to="/flows/$name" params={{ name: flow.name }} className="flow-name">
          {flow.name}
        </Link>
        {flow.description ? (
          <p className="muted flow-description">
            <Text text={flow.description} />
          </p>
        ) : null}
        <p className="muted small flow-facts">
          <Link to="/flows/$name" params={{ name: flow.name }} search={{ tab: "versions" }}>
            {t("versionCount", { count: flow.versions.length })}
          </Link>
          <span className="code">{current ? versionName(current) : ""}</span>
          {current && current.workers === 0 ? <span className="late">{t("noWorker")}</span> : null}
        </p>
      </div>
      <LiveRuns flow={flow.name} />
      {mayStart ? (
        <Link to="/flows/$name/start" params={{ name: flow.name }} className="button" aria-label={t("startNamed", { flow: flow.name })}>
          {word("startRun")}
        </Link>
      ) : null}
    </li>
  );
}
