import type { Shown } from "@/words";
import { Icon } from "./Icon";

export function StatusBadge({ shown }: { shown: Shown }) {
  return (
    <span className={`badge role-${shown.role}`}>
      <Icon name={shown.icon} />
      {shown.word}
    </span>
  );
}
