/** How much of a text is shown: all, a beginning, or none of it in the page. */
import { bytesOf } from "./size";

const LONG = 4096;
const LINES = 20;
/** So much of a folded text is shown, a page of a phone at most. */
const BEGINNING = 1000;
const HUGE = 256 * 1024;

export type Fold = { kind: "whole" | "folded" | "download"; beginning: string; bytes: number };

/** `most`: so many bytes are shown whole. */
export function foldOf(text: string, most = LONG): Fold {
  const bytes = bytesOf(text);
  const lines = text.split("\n", LINES + 1);
  const beginning = lines.slice(0, LINES).join("\n").slice(0, Math.min(most, BEGINNING));
  if (bytes > HUGE) return { kind: "download", beginning, bytes };
  return { kind: bytes > most || lines.length > LINES ? "folded" : "whole", beginning, bytes };
}
