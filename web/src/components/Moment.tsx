/** A time in the reader's zone. The exact time and UTC are read on hover and by screen readers. */
import { exactTime, shortTime } from "@/models/time";
import { useNow } from "./useNow";

export function Moment({ at, text }: { at: string; text?: string }) {
  const now = useNow();
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>{at}</span>;
  return (
    <time dateTime={date.toISOString()} title={exactTime(date)}>
      {text ?? shortTime(date, new Date(now))}
    </time>
  );
}
