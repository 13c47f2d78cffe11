/** What else there is about a hold: its history, what it leads to, its data. */
import { Link } from "@tanstack/react-router";
import { Icon } from "@/components/Icon";
import { writeJson } from "@/models/json";
import { plainText } from "@/models/values";
import type { Hold } from "@/services/holds";
import { Activity } from "./Activity";
import { t } from "./text";

export function Tabs({ hold, tab, flow }: { hold: Hold; tab: string; flow: React.ReactNode }) {
  const tabs = [
    ["activity", t("activity")],
    ["flow", t("flow")],
    ["data", t("data")],
  ] as const;
  return (
    <section className="hold-tabs">
      <nav className="tabs" aria-label={t("about")}>
        {tabs.map(([name, label]) => (
          <Link
            key={name}
            to="."
            search={(old: object) => ({ ...old, tab: name })}
            aria-current={tab === name ? "page" : undefined}
            resetScroll={false}
          >
            {label}
          </Link>
        ))}
      </nav>
      {tab === "activity" ? <Activity hold={hold} /> : null}
      {tab === "flow" ? (
        <>
          {flow}
          <p>
            <Link to="/runs/$run" params={{ run: hold.run }}>
              {t("openRun", { flow: hold.flow, node: hold.node })} <Icon name="arrow" />
            </Link>
          </p>
        </>
      ) : null}
      {tab === "data" ? (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
        <pre className="json" tabIndex={0}>
          {plainText(writeJson({ context: hold.context, schema: hold.schema }, 2).slice(0, 262_144))}
        </pre>
      ) : null}
    </section>
  );
}
