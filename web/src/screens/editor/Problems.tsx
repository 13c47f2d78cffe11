/** Everything that the server's checker found, each with its place and its fix. */
import type { Selection } from "@/models/canvasSelection";
import type { Problem } from "@/services/documents";
import { t } from "./text";

/** Without `onSelect` their places are only named. */
export function Problems({ problems, onSelect }: { problems: Problem[]; onSelect?: (selection: Selection) => void }) {
  if (problems.length === 0) return <p className="muted">{t("noProblems")}</p>;
  return (
    <ul className="problem-list">
      {problems.map((each, place) => (
        <li key={place}>
          <p className="problem-place">
            <span className={each.severity === "error" ? "late" : "muted"}>{t("severity", { severity: each.severity })}</span>
            {onSelect ? <Place problem={each} onSelect={onSelect} /> : <span className="code small">{each.node || each.edge}</span>}
            {each.field ? <span className="code small">{each.field}</span> : null}
            {each.line === null ? null : <span className="muted small">{t("line", { line: each.line })}</span>}
          </p>
          <p>{each.message}</p>
          {each.fix ? <p className="muted small">{t("fix", { fix: each.fix })}</p> : null}
        </li>
      ))}
    </ul>
  );
}

function Place({ problem: { node, edge }, onSelect }: { problem: Problem; onSelect: (selection: Selection) => void }) {
  if (!node && !edge) return null;
  return (
    <button type="button" className="link" onClick={() => onSelect(node ? { nodes: [node], edges: [] } : { nodes: [], edges: [edge] })}>
      {node || edge}
    </button>
  );
}

/** Problems at one field, below its control. */
export function FieldProblems({ problems, id }: { problems: Problem[]; id: string }) {
  if (problems.length === 0) return null;
  return (
    <div id={id}>
      {problems.map((each, place) => (
        <div key={place} className={`field-problem small severity-${each.severity}`}>
          <p className={each.severity === "error" ? "field-error" : undefined}>{each.message}</p>
          {each.fix ? <p className="muted">{t("fix", { fix: each.fix })}</p> : null}
        </div>
      ))}
    </div>
  );
}
