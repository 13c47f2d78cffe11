/** A moment as a control shows it: in the reader's zone, without an offset. */
import { instantOf, offsetAt } from "./time";

/** With an offset at its end. */
export const ZONED = /(Z|[+-]\d\d:?\d\d)$/;

/** null: not a moment yet. */
export function momentOf(text: string): Date | null {
  const at = new Date(ZONED.test(text) ? text : (instantOf(text) ?? ""));
  return Number.isNaN(at.getTime()) ? null : at;
}

/** In the reader's zone, as the control wants it. What is still being typed stays. */
export function localText(text: string): string {
  const at = momentOf(text);
  if (at === null || !ZONED.test(text)) return text;
  return new Date(at.getTime() + offsetAt(at.getTime())).toISOString().slice(0, 19);
}

/** `+02:00`: what the reader's clock is ahead of UTC at that moment. */
export function offsetText(at: Date): string {
  const minutes = Math.round(offsetAt(at.getTime()) / 60_000);
  const size = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
