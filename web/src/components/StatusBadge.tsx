import type { Shown } from "@/words";
import { Icon } from "./Icon";

const LONG = 20;

/** A word of an author may be long: it is cut, and whole on hover and for screen readers. `exact`: the time that it names, on hover and for screen readers. */
export function StatusBadge({ shown, exact = "" }: { shown: Shown; exact?: string }) {
  return (
    <span className={`badge role-${shown.role}`} title={exact || undefined}>
      <Icon name={shown.icon} />
      <span className="badge-word" title={shown.word.length > LONG ? shown.word : undefined}>{shown.word}</span>
      {exact ? <span className="away">{` (${exact})`}</span> : null}
    </span>
  );
}
