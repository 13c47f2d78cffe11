/** Shown only if the answer takes longer than 150 ms: the delay is in the style sheet. */
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";

const t = textOf(shell);

export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div className="skeleton" aria-busy="true">
      <span className="away">{t("loading")}</span>
      {Array.from({ length: rows }, (_, place) => (
        <span key={place} className="skeleton-row" />
      ))}
    </div>
  );
}
