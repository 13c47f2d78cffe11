/** An error with its traceback, the frames of the flow first. */
import { Text } from "@/components/Value";
import type { Failed } from "@/services/steps";
import { t } from "./text";

const SAID = new Set(["type", "message", "code"]);

export function StepFailure({ failed, traceback, open = false }: { failed: Failed; traceback: string; open?: boolean }) {
  const rest = Object.entries(failed).filter(([name]) => !SAID.has(name));
  return (
    <div className="run-error">
      <strong>{failed["type"]}</strong>
      <div><Text text={failed["message"] ?? ""} /></div>
      {rest.map(([name, value]) => (
        <div key={name} className="small"><span className="code">{name}</span> <Text text={value} /></div>
      ))}
      {traceback ? (
        <details className="traceback" open={open}>
          <summary className="small">{t("traceback")}</summary>
          {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys */}
          <pre className="code" tabIndex={0}>{traceback}</pre>
        </details>
      ) : null}
    </div>
  );
}
