/** What else there is about a hold: its history, what it leads to, its data. */
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { Icon } from "@/components/Icon";
import { writeJson } from "@/models/json";
import { plainText } from "@/models/values";
import type { Hold } from "@/services/holds";
import { Activity } from "./Activity";
import { t } from "./text";

/** Whether the page was opened with this very address: moving through the list stays at the top of each question. */
let isDeepLink = true;
const SETTLES = 3000;

/** A link to a tab opens at the tab, also when what is in it comes later; until the reader does something. */
function useDeepLink(place: React.RefObject<HTMLElement | null>, isNamed: boolean): void {
  useEffect(() => {
    const isMeant = isDeepLink && isNamed && place.current !== null;
    isDeepLink = false;
    if (!isMeant) return undefined;
    const show = () => place.current?.scrollIntoView({ block: "start" });
    const watcher = new ResizeObserver(show);
    const stop = () => watcher.disconnect();
    watcher.observe(place.current!);
    const timer = setTimeout(stop, SETTLES);
    const acts = ["wheel", "pointerdown", "keydown", "touchstart"] as const;
    for (const each of acts) window.addEventListener(each, stop, { once: true, passive: true });
    return () => {
      stop();
      clearTimeout(timer);
      for (const each of acts) window.removeEventListener(each, stop);
    };
  }, [place, isNamed]);
}

export function Tabs({ hold, tab, flow }: { hold: Hold; tab: string; flow: React.ReactNode }) {
  const place = useRef<HTMLElement>(null);
  useDeepLink(place, tab !== "activity");
  const tabs = [
    ["activity", t("activity")],
    ["flow", t("flow")],
    ["data", t("data")],
  ] as const;
  return (
    <section className="hold-tabs" ref={place}>
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
