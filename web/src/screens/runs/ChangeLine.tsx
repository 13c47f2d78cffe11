/** One difference: its place, and both values; a text of several lines by line. */
import { lineKind } from "@/models/diff";
import { plainText } from "@/models/values";
import type { ValueChange } from "@/services/comparison";
import { shortText, t } from "./text";

const MOST = 2000;
const SIGNS: Record<string, { sign: string; word: "added" | "removed" | "changed" }> = {
  added: { sign: "+", word: "added" },
  removed: { sign: "−", word: "removed" },
  changed: { sign: "~", word: "changed" },
};

export function ChangeLine({ change }: { change: ValueChange }) {
  const { sign, word } = SIGNS[change.kind] ?? SIGNS["changed"]!;
  return (
    <li className={`change change-${word}`}>
      <span className="change-sign" title={t(word)}><span aria-hidden="true">{sign}</span><span className="away">{t(word)}</span></span>
      <span className="change-path code">{plainText(change.path) || t("wholeValue")}</span>
      {change.lines.length > 0 ? <Lines lines={change.lines} /> : (
        <span className="change-values">
          {change.kind === "added" ? null : <del>{shortText(change.before, MOST)}</del>}
          {change.kind === "changed" ? <span className="muted" aria-hidden="true"> {"→"} </span> : null}
          {change.kind === "removed" ? null : <ins>{shortText(change.after, MOST)}</ins>}
        </span>
      )}
    </li>
  );
}

function Lines({ lines }: { lines: string[] }) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
    <pre className="change-lines" tabIndex={0}>
      {lines.map((line, place) => {
        const kind = lineKind(line);
        const text = `${plainText(line)}\n`;
        if (kind === "added") return <ins key={place}>{text}</ins>;
        if (kind === "removed") return <del key={place}>{text}</del>;
        return <span key={place} className={kind === "place" ? "muted" : ""}>{text}</span>;
      })}
    </pre>
  );
}
