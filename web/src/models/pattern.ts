/** Regular expressions of the server's kind, as far as a browser has the same. */
import { SPACE } from "./pythonText";

const WORD = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
const GROUPS = /^\(\?(?::|=|!|<=|<!|P?<(?=[A-Za-z_])|P=)/;
const OUTSIDE: Record<string, string> = {
  d: "\\p{Nd}", D: "\\P{Nd}", w: `[${WORD}]`, W: `[^${WORD}]`, s: `[${SPACE}]`, S: `[^${SPACE}]`,
  b: `(?:(?<=[${WORD}])(?![${WORD}])|(?<![${WORD}])(?=[${WORD}]))`, A: "^", Z: "$",
};
const INSIDE: Record<string, string> = { d: "\\p{Nd}", D: "\\P{Nd}", w: WORD, s: SPACE };
const made = new Map<string, RegExp | null>();

/** Whether the pattern is found in the text; null: only the server can tell. */
export function isMatch(pattern: string, text: string): boolean | null {
  let found = made.get(pattern);
  if (found === undefined) {
    found = compiled(pattern);
    made.set(pattern, found);
  }
  return found === null ? null : found.test(text);
}

function compiled(pattern: string): RegExp | null {
  const source = translated(pattern);
  try {
    return source === null ? null : new RegExp(source, "u");
  } catch {
    return null;
  }
}

function translated(pattern: string): string | null {
  let [found, place, isClass] = ["", 0, false];
  while (place < pattern.length) {
    const rest = pattern.slice(place);
    const part = rest.startsWith("\\") ? escaped(rest, isClass) : isClass ? inClass(rest) : outOfClass(rest);
    if (part === null) return null;
    if (!rest.startsWith("\\")) isClass = isClass ? !rest.startsWith("]") : rest.startsWith("[");
    found += part.text;
    place += part.length;
  }
  return found;
}

type Part = { text: string; length: number };

function escaped(rest: string, isClass: boolean): Part | null {
  const letter = rest[1] ?? "";
  const known = (isClass ? INSIDE : OUTSIDE)[letter];
  if (known !== undefined) return { text: known, length: 2 };
  if (/[nrtfv]/.test(letter) || (!isClass && /[1-9]/.test(letter))) return { text: `\\${letter}`, length: 2 };
  if (letter === "-" && isClass) return { text: "\\-", length: 2 };
  if (/[\^$\\.*+?()[\]{}|/]/.test(letter)) return { text: `\\${letter}`, length: 2 };
  return /[\p{L}\p{N}]/u.test(letter) || letter === "" ? null : { text: letter, length: 2 };
}

function inClass(rest: string): Part | null {
  // Classes by name, and operations on sets, are written alike but mean something else.
  return rest.startsWith("[:") ? null : { text: rest[0]!, length: 1 };
}

function outOfClass(rest: string): Part | null {
  if (/^\[\^?\]/.test(rest)) return null;
  if (rest.startsWith("[^")) return { text: "[^", length: 2 };
  if (rest.startsWith("$")) return { text: "(?=\\n?(?![^]))", length: 1 };
  if (rest.startsWith(".")) return { text: "[^\\n]", length: 1 };
  if (!rest.startsWith("(?")) return { text: rest[0]!, length: 1 };
  const group = GROUPS.exec(rest)?.[0];
  if (group === undefined) return null;
  if (group === "(?P=") return named(rest);
  return { text: group.replace("P<", "<"), length: group.length };
}

/** `(?P=name)`: what the group of this name found. */
function named(rest: string): Part | null {
  const found = /^\(\?P=(\w+)\)/.exec(rest);
  return found ? { text: `\\k<${found[1]}>`, length: found[0].length } : null;
}
