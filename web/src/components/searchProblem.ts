/** Which word of a search is wrong, and what could stand there. */
import { search } from "@/locales/en/search";
import { textOf } from "@/locales/text";
import { type Wrong, parted } from "@/models/query";

const t = textOf(search);

const TEXTS = {
  name: "wrongName",
  unknown: "wrongUnknown",
  value: "wrongValue",
  compared: "wrongCompared",
  sign: "wrongSign",
  length: "wrongLength",
  none: "wrongNone",
  twice: "wrongTwice",
} as const;

export function searchProblem(wrong: Wrong | null): string {
  if (wrong === null) return "";
  const key = wrong.reason in TEXTS ? TEXTS[wrong.reason as keyof typeof TEXTS] : "wrongWord";
  const isBare = key === "wrongValue" && wrong.known.length === 0;
  return t(isBare ? "wrongWord" : key, { word: wrong.word, name: parted(wrong.word).name, known: wrong.known.join(", ") });
}
