/** The words of a search: how a text is split, what a word says, and which word is wrong. The server reads them alike. */
import { QueryError, lengthIn } from "./queryLength";

export { QueryError } from "./queryLength";

/** `reason`: how the word is wrong; `known`: what could stand there. */
export type Wrong = { word: string; reason: string; known: readonly string[] };
export type Word = { name: string; sign: string; value: string };

const SIGNS = [">=", "<=", ">", "<", ":"] as const;
const BLANKS = " \t\r\n";
// oxlint-disable-next-line no-control-regex -- what Python takes for blanks
const EVERY_BLANK = /[\s\x1c-\x1f\x85]+/u;

/** As a shell splits them; a quote that is not closed, or an apostrophe, is taken as it stands. */
export function splitWords(text: string): string[] {
  return quotedWords(text) ?? text.split(EVERY_BLANK).filter(Boolean);
}

function quotedWords(text: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  for (let place = 0; place < text.length; place += 1) {
    const letter = text[place]!;
    if (quote && letter === quote) quote = "";
    else if (letter === "\\" && quote !== "'") {
      const next = text[(place += 1)];
      if (next === undefined) return null;
      word = (word ?? "") + (quote && next !== "\\" && next !== quote ? `\\${next}` : next);
    } else if (quote) word += letter;
    else if (letter === '"' || letter === "'") {
      quote = letter;
      word ??= "";
    } else if (!BLANKS.includes(letter)) word = (word ?? "") + letter;
    else if (word !== null) {
      words.push(word);
      word = null;
    }
  }
  if (quote) return null;
  return word === null ? words : [...words, word];
}

/** By the sign that comes first; a longer one wins at the same place. */
export function parted(word: string): Word {
  const found = SIGNS.filter((sign) => word.includes(sign)).toSorted((one, other) => word.indexOf(one) - word.indexOf(other) || other.length - one.length)[0];
  if (found === undefined) return { name: "", sign: "", value: "" };
  const at = word.indexOf(found);
  return { name: word.slice(0, at).toLowerCase(), sign: found, value: word.slice(at + found.length) };
}

export function requireColon({ sign }: Word): void {
  if (sign !== ":") throw new QueryError("compared");
}

/** Microseconds. */
export function lengthOf({ sign, value }: Word): bigint {
  if (sign === ":") throw new QueryError("sign");
  return lengthIn(value);
}

/** Its value is searched as text, whatever it has in it. */
export const TEXT = "text";

/** A word with a name that no condition has is a mistake, and not a text to search for; an address is one. */
function wrongName(word: string, known: ReadonlySet<string>): Wrong | null {
  const { name, value } = parted(word);
  if (!value || value.startsWith("//") || !/^[a-z_]{2,20}$/.test(name)) return null;
  const near = nearNames(name, known);
  return near.length > 0 ? { word, reason: "name", known: near } : { word, reason: "unknown", known: [...known].toSorted() };
}

/** What was read, or the first word that is wrong. Words without a known name are `free`. */
export function readWords(text: string, known: ReadonlySet<string>, take: (word: Word) => void): { free: string; words: string[]; wrong: Wrong | null } {
  const free: string[] = [];
  const words: string[] = [];
  for (const word of splitWords(text)) {
    const found = parted(word);
    if (!known.has(found.name) || !found.value) {
      const wrong = wrongName(word, known);
      if (wrong) return { free: "", words: [], wrong };
      free.push(word);
      continue;
    }
    try {
      if (found.name === TEXT) {
        requireColon(found);
        free.push(found.value);
        continue;
      }
      take(found);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      return { free: "", words: [], wrong: { word, reason: error.reason, known: error.known } };
    }
    words.push(word);
  }
  return { free: free.join(" "), words, wrong: null };
}

/** The nearest of the known names; short ones must begin alike. Empty if none is near. */
export function nearNames(name: string, known: Iterable<string>): string[] {
  if (!/^[a-z_]{3,20}$/.test(name)) return [];
  const isShort = name.length <= 4;
  const found = [...known].toSorted().filter((each) => !isShort || each[0] === name[0]).map((each) => [each, distance(name, each)] as const);
  const least = Math.min(3, ...found.map(([, far]) => far));
  return found.filter(([, far]) => far === least && far > 0 && far <= (isShort ? 1 : 2)).map(([each]) => each);
}

/** How many letters are wrong, missing, added or swapped with the next. */
function distance(one: string, other: string): number {
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, place) => place);
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const isSame = one[i - 1] === other[j - 1];
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      row.push(Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + Number(!isSame), isSwapped ? before[j - 2]! + 1 : Infinity));
    }
    [before, last] = [last, row];
  }
  return last.at(-1)!;
}

/** The search with the name of a condition that was meant, else with the word as text; empty if it is wrong in another way. */
export function repaired(text: string, wrong: Wrong | null): string {
  const meant = wrong === null ? "" : meantBy(wrong);
  if (wrong === null || meant === "") return "";
  return splitWords(text).map((each) => quoted(each === wrong.word ? meant : each)).join(" ");
}

function meantBy({ word, reason, known }: Wrong): string {
  const { sign, value } = parted(word);
  if (reason === "unknown") return `${TEXT}:${word}`;
  return reason === "name" ? known[0] + sign + value : "";
}

/** The same search without one of its words; what is free text stays. */
export function withoutWord(text: string, word: string): string {
  return splitWords(text).filter((each) => each !== word).map(quoted).join(" ");
}

/** Only the words that restrict the list: without the free text. */
export function withoutText(text: string, words: readonly string[]): string {
  return splitWords(text).filter((each) => words.includes(each)).map(quoted).join(" ");
}

function quoted(word: string): string {
  return /[\s"'\\]/.test(word) || word === "" ? `"${word.replace(/["\\]/g, "\\$&")}"` : word;
}
