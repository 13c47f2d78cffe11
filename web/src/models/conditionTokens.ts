import { SPACE } from "./pythonText";

export type Token = { kind: "name" | "literal" | "operator"; value: unknown };

const TOKEN = new RegExp(
  [
    `(?<space>[${SPACE}]+)`,
    "(?<name>[\\p{L}\\p{Nl}\\p{No}_][\\p{L}\\p{N}_]*(?:\\.(?:[\\p{L}\\p{Nl}\\p{No}_][\\p{L}\\p{N}_]*|[0-9]+))*)",
    "(?<number>-?[0-9]+(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\\p{L}\\p{N}_.]))",
    "(?<string>'(?:[^'\\\\]|\\\\[\\s\\S])*'|\"(?:[^\"\\\\]|\\\\[\\s\\S])*\")",
    "(?<operator>===|!==|==|!=|>=|<=|&&|\\|\\||[<>!?:()[\\],|])",
  ].join("|"),
  "uy",
);
const LITERALS: Record<string, unknown> = { true: true, false: false, null: null, True: true, False: false, None: null };
const WORDS: Record<string, string> = { and: "&&", or: "||", not: "not", in: "in" };
const ESCAPED: Record<string, string> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f", 0: "\0", "\\": "\\", "'": "'", '"': '"', "/": "/" };

/** Throws SyntaxError. */
export function tokensOf(text: string): Token[] {
  const found: Token[] = [];
  let place = 0;
  while (place < text.length) {
    TOKEN.lastIndex = place;
    const match = TOKEN.exec(text);
    if (!match) throw new SyntaxError("unexpected character");
    const { name, number, string, operator } = match.groups as Record<string, string | undefined>;
    if (name !== undefined) found.push(wordOf(name));
    else if (number !== undefined) found.push({ kind: "literal", value: literalNumber(number) });
    else if (string !== undefined) found.push({ kind: "literal", value: unescaped(string.slice(1, -1)) });
    else if (operator !== undefined) found.push({ kind: "operator", value: operator });
    place = TOKEN.lastIndex;
  }
  return found;
}

function wordOf(text: string): Token {
  if (Object.hasOwn(LITERALS, text)) return { kind: "literal", value: LITERALS[text] };
  if (Object.hasOwn(WORDS, text)) return { kind: "operator", value: WORDS[text] };
  return { kind: "name", value: text.split(".") };
}

function literalNumber(text: string): number | bigint {
  const value = Number(text);
  if (/^-?\d+$/.test(text) && !Number.isSafeInteger(value)) return BigInt(text);
  if (!Number.isFinite(value)) throw new SyntaxError("number too large");
  return value;
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([\s\S]))/g, (_, long?: string, short?: string, letter = "") => {
    const code = long ?? short;
    if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
    if (!Object.hasOwn(ESCAPED, letter)) throw new SyntaxError("unknown escape");
    return ESCAPED[letter]!;
  });
}
