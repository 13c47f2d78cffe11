/** Operations: one panel at a time, by its address. */
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useSession } from "@/app/useSession";
import { Boundary } from "@/components/Boundary";
import { Forbidden, NotFound } from "@/components/Problem";
import { TabRow } from "@/components/TabRow";
import { useTitle } from "@/components/useTitle";
import { getFigures } from "@/services/operations";
import { Announce } from "./Announce";
import { Audit } from "./Audit";
import { Backlog } from "./Backlog";
import { DeadLetters } from "./DeadLetters";
import { Members } from "./Members";
import { Metrics } from "./Metrics";
import { Notifications } from "./Notifications";
import { Queues } from "./Queues";
import { Schedules } from "./Schedules";
import { Tokens } from "./Tokens";
import { Workers } from "./Workers";
import "./operations.css";
import { PANELS, type PanelName, countOf, panelOf, shownPanels } from "./panels";
import { EVERY } from "./Panel";
import { t } from "./text";

const CONTENT: Record<PanelName, React.ComponentType> = {
  workers: Workers,
  backlog: Backlog,
  metrics: Metrics,
  schedules: Schedules,
  dead: DeadLetters,
  notifications: Notifications,
  queues: Queues,
  audit: Audit,
  tokens: Tokens,
  members: Members,
};

export function Screen() {
  const { panel: name } = useParams({ strict: false });
  const { rights } = useSession();
  const panel = panelOf(name, rights);
  return panel === null ? <NotFound /> : <Panels panel={panel} />;
}

function Panels({ panel }: { panel: PanelName }) {
  const { rights } = useSession();
  const [said, say] = useState("");
  useTitle([t(panel), t("title")]);
  const right = PANELS[panel];
  const Content = CONTENT[panel];
  return (
    <main id="main" tabIndex={-1} className="page operations">
      <h1>{t("title")}</h1>
      <Tabs panel={panel} />
      <output className="said">{said}</output>
      <Announce.Provider value={say}>
        <div className="operations-panel" data-part="work"><Boundary resetKey={panel}>{rights.has(right) ? <Content key={panel} /> : <Forbidden right={right} />}</Boundary></div>
      </Announce.Provider>
    </main>
  );
}

function Tabs({ panel }: { panel: PanelName }) {
  const { rights } = useSession();
  const figures = useQuery({
    queryKey: ["operations", "figures"],
    queryFn: getFigures,
    enabled: rights.has("admin:manage"),
    refetchInterval: EVERY,
  });
  return (
    <TabRow label={t("panels")} current={panel}>
      {shownPanels(rights).map((name) => {
        const count = countOf(name, figures.data);
        return (
          <Link key={name} to="/operations/$panel" params={{ panel: name }} aria-current={name === panel ? "page" : undefined}>
            {t(name)}
            {count > 0 ? <span className={`tab-count ${name === "backlog" ? "" : "role-failed"}`}>{count}</span> : null}
          </Link>
        );
      })}
    </TabRow>
  );
}
