/** Nodes before which the run stops. */
import { Problem } from "@/components/Problem";
import { Drawing, useNodes } from "./Graph";
import { t } from "./text";

type BreakpointsProps = { flow: string; version: string; chosen: string[]; onChange: (chosen: string[]) => void };

export function Breakpoints({ flow, version, chosen, onChange }: BreakpointsProps) {
  const nodes = useNodes(flow, version);
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
      <details>
        <summary>{t("showGraph")}</summary>
        <Drawing flow={flow} version={version} />
      </details>
    </section>
  );
}
