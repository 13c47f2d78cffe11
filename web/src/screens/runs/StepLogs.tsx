/** Lines of log of a step, the latest ones. */
import { Moment } from "@/components/Moment";
import type { LogLine } from "@/models/emitted";
import { StepPart } from "./StepPart";
import { t } from "./text";

const MOST = 200;

export function StepLogs({ lines }: { lines: LogLine[] }) {
  const shown = lines.slice(-MOST);
  return (
    <StepPart title={t("logs", { count: lines.length })} open>
      <ol className="step-logs small code">
        {shown.map((each, place) => (
          <li key={place}>
            <span className="muted"><Moment at={each.at} seconds /> {each.level}</span> {each.text}
          </li>
        ))}
      </ol>
    </StepPart>
  );
}
