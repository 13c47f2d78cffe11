/** A time in the reader's zone. The exact time and UTC are read on hover and by screen readers. */
import { exactTime, shortTime } from "@/models/time";
import { useNow } from "./useNow";

/** `seconds`: for moments that follow each other within a minute. */
export function Moment({ at, text, seconds = false }: { at: string; text?: string; seconds?: boolean }) {
  const now = useNow();
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>{at}</span>;
  const exact = exactTime(date);
  return (
    <time dateTime={date.toISOString()} title={exact}>
      {text ?? shortTime(date, new Date(now), { seconds })}
      <span className="away">{` (${exact})`}</span>
    </time>
  );
}
