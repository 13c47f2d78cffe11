/** One flow: its graph, versions, latest runs and failures. */
import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { Boundary } from "@/components/Boundary";
import { isLost } from "@/components/isLost";
import { Forbidden, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { TabRow } from "@/components/TabRow";
import { useTitle } from "@/components/useTitle";
import { Text } from "@/components/Value";
import { type Counts, type Flow, getFlow } from "@/services/flows";
import { word } from "@/words";
import { Failures } from "./Failures";
import "./flows.css";
import { Graph } from "./Graph";
import { LatestRuns } from "./LatestRuns";
import { LiveRuns, useCounts } from "./LiveRuns";
import { FLOW_TABS, type FlowTab } from "./routes";
import { t } from "./text";
import { versionIn, versionName } from "./versions";
import { Versions } from "./Versions";

export function FlowScreen() {
  const { name = "" } = useParams({ strict: false });
  const mayRead = useRight("flows:read");
  useTitle([name, t("title")]);
  return (
    <main id="main" tabIndex={-1} className="page">
      {mayRead ? <FlowPage key={name} name={name} /> : <Forbidden right="flows:read" />}
    </main>
  );
}

function FlowPage({ name }: { name: string }) {
  const search = useSearch({ strict: false });
  const mayReadRuns = useRight("runs:read");
  const flow = useQuery({ queryKey: ["flows", "one", name], queryFn: () => getFlow(name) });
  const counts = useCounts(name);
  if (flow.isPending) return <Skeleton />;
  if (isLost(flow)) return <Problem error={flow.error} onRetry={() => void flow.refetch()} />;
  const tab = FLOW_TABS.find((each) => each === search.tab) ?? "graph";
  const isOfRuns = tab === "runs" || tab === "failures";
  return (
    <>
      <Head flow={flow.data} wanted={search.version} />
      <TabRow label={t("parts")} current={tab}>
        {FLOW_TABS.map((each) => (
          <Link key={each} to="/flows/$name" params={{ name }} search={{ tab: each }} aria-current={tab === each ? "page" : undefined}>
            {t(each)} <Count tab={each} flow={flow.data} counts={counts} />
          </Link>
        ))}
      </TabRow>
      <Boundary resetKey={tab}>
        {tab === "graph" ? <Graph flow={flow.data} wanted={search.version} /> : null}
        {tab === "versions" ? <Versions flow={flow.data} /> : null}
        {isOfRuns && !mayReadRuns ? <Forbidden right="runs:read" /> : null}
        {tab === "runs" && mayReadRuns ? <LatestRuns flow={flow.data} /> : null}
        {tab === "failures" && mayReadRuns ? <Failures flow={name} /> : null}
      </Boundary>
    </>
  );
}

function Count({ tab, flow, counts }: { tab: FlowTab; flow: Flow; counts: Counts | undefined }) {
  const all = counts && Object.values(counts).reduce((sum, each) => sum + each, 0);
  const found = { graph: 0, versions: flow.versions.length, runs: all, failures: counts?.failed }[tab];
  return found ? <span className="tab-count">{found}</span> : null;
}

function Head({ flow, wanted }: { flow: Flow; wanted: string | undefined }) {
  const mayStart = useRight("runs:write");
  const version = versionIn(flow, wanted);
  return (
    <header className="flow-head">
      <p className="muted small flow-up">
        <Link to="/flows">{t("title")}</Link>
      </p>
      <div className="flow-line">
        <h1>{flow.name}</h1>
        {version ? <span className="code muted">{versionName(version)}</span> : null}
        <Link to="/editor/$document" params={{ document: flow.name }} className="button flow-edit">
          {version?.isDocument ? t("edit") : t("openGraph")}
        </Link>
        {mayStart ? (
          <Link
            to="/flows/$name/start"
            params={{ name: flow.name }}
            search={version && !version.isCurrent ? { version: version.id } : {}}
            className="button primary flow-start"
          >
            {word("startRun")}
          </Link>
        ) : null}
      </div>
      {flow.description ? (
        <p className="muted">
          <Text text={flow.description} />
        </p>
      ) : null}
      <LiveRuns flow={flow.name} />
    </header>
  );
}
