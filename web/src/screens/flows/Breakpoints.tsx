/** Nodes before which the run stops: in a list, or on the graph. */
import { Suspense, lazy, useState } from "react";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { useNodes } from "./Graph";
import { t } from "./text";

const GraphPicker = lazy(async () => ({ default: (await import("@/screens/editor/GraphPicker")).GraphPicker }));

type BreakpointsProps = { flow: string; version: string; chosen: string[]; onChange: (chosen: string[]) => void };

export function Breakpoints({ flow, version, chosen, onChange }: BreakpointsProps) {
  const nodes = useNodes(flow, version);
  const [isOpen, setOpen] = useState(false);
  const toggle = (name: string) => onChange(chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name]);
  return (
    <section className="panel flow-part" aria-label={t("breakpoints")}>
      <h2>{t("breakpoints")}</h2>
      {nodes.isError ? <Problem error={nodes.error} onRetry={() => void nodes.refetch()} /> : null}
      <fieldset className="breaks">
        <legend className="muted small">{t("breaksHelp")}</legend>
        {nodes.data?.map((each) => (
          <label key={each.name} className="choice">
            <input type="checkbox" checked={chosen.includes(each.name)} onChange={() => toggle(each.name)} />
            {each.name}
          </label>
        ))}
      </fieldset>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{t("showGraph")}</summary>
        {isOpen ? (
          <Suspense fallback={<Skeleton />}>
            <GraphPicker flow={flow} version={version} chosen={chosen} onPick={toggle} />
          </Suspense>
        ) : null}
      </details>
    </section>
  );
}
