import type { Shown } from "@/words";
import { Icon } from "./Icon";

/** `exact`: the time that it names, on hover and for screen readers. */
export function StatusBadge({ shown, exact = "" }: { shown: Shown; exact?: string }) {
  return (
    <span className={`badge role-${shown.role}`} title={exact || undefined}>
      <Icon name={shown.icon} />
      {shown.word}
      {exact ? <span className="away">{` (${exact})`}</span> : null}
    </span>
  );
}
