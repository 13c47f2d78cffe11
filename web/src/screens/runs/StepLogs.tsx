/** Lines of log of a step, the latest ones. */
import { Moment } from "@/components/Moment";
import { Text } from "@/components/Value";
import type { LogLine } from "@/models/emitted";
import { StepPart } from "./StepPart";
import { t } from "./text";

const MOST = 200;
const WRONG = new Set(["warning", "error", "critical"]);
const isWrong = (level: string) => WRONG.has(level);

export function StepLogs({ lines }: { lines: LogLine[] }) {
  const shown = lines.slice(-MOST);
  return (
    <StepPart title={t("logs", { count: lines.length })} open>
      <ol className="step-logs small code">
        {shown.map((each, place) => (
          <li key={place}>
            {each.attempt === shown[place - 1]?.attempt || (place === 0 && each.attempt === 1) ? null : <strong>{t("attemptNumber", { number: each.attempt })} </strong>}
            <span className="muted"><Moment at={each.at} seconds /> {each.level}</span> <span className={isWrong(each.level) ? "late" : undefined}><Text text={each.text} /></span>
          </li>
        ))}
      </ol>
    </StepPart>
  );
}
