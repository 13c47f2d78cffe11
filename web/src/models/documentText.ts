/** The text of a document, changed only where its data changes: comments, order and style of the rest stay. */
import { LineCounter, type Node, type Pair, Scalar, type YAMLMap, YAMLParseError, type YAMLSeq, isMap, isNode, isPair, isScalar, isSeq, parseDocument, stringify, visit } from "yaml";
import { isSame, nameOf } from "./documentData";

export type Format = "yaml" | "json";
export type TextProblem = { message: string; line: number; column: number };
export type ReadText = { data: Record<string, unknown> | null; problem: TextProblem | null };
type Edit = { from: number; to: number; text: string };

const WIDTH = { lineWidth: 0, flowCollectionPadding: false } as const;
/** Aliases that repeat more than this are refused, as the server does. */
const ALIASES = 100;

export function readText(text: string, format: Format): ReadText {
  const document = parsed(text);
  const error = document.errors[0];
  // The library is stricter about tabs than JSON is.
  const found = format === "json" ? readJson(text) : null;
  if (error && !isRecord(found)) {
    const at = error.linePos?.[0] ?? { line: 1, col: 1 };
    return { data: null, problem: { message: (error.message.split("\n")[0] ?? "").replace(/ at line \d+, column \d+:?$/, ""), line: at.line, column: at.col } };
  }
  const data = found ?? plain(document);
  return isRecord(data) ? { data, problem: null } : { data: null, problem: { message: "", line: 1, column: 1 } };
}

/** The library compares each name with all names before it: 40,000 of them take seconds. */
function parsed(text: string): ReturnType<typeof parseDocument> {
  const lines = new LineCounter();
  const document = parseDocument(text, { prettyErrors: true, uniqueKeys: false, lineCounter: lines });
  visit(document, {
    Map(_key, node) {
      const known = new Set<unknown>();
      for (const { key } of node.items as Pair<Node, Node | null>[]) {
        const name = isScalar(key) ? key.value : key;
        if (known.has(name) && isNode(key) && key.range) {
          const error = new YAMLParseError([key.range[0], key.range[1]], "DUPLICATE_KEY", "Map keys must be unique");
          const { line, col } = lines.linePos(key.range[0]);
          error.linePos = [{ line, col }];
          document.errors.push(error);
          return visit.BREAK;
        }
        known.add(name);
      }
      return undefined;
    },
  });
  return document;
}

/** The text with this data instead of its own. */
export function rewriteText(text: string, format: Format, after: Record<string, unknown>): string {
  const document = parsed(text);
  if (document.errors.length === 0 && isMap(document.contents)) {
    const made = applied(text, new Writer(text, format).map(document.contents as YAMLMap, after), 0);
    if (isSame(readText(made, format).data, after)) return made;
  }
  // An anchor that is used twice, or a style that is not known here: the whole text is written anew.
  return format === "json" ? `${JSON.stringify(after, null, 2)}\n` : stringify(after, WIDTH);
}

/** Part of a document as a text of its own. */
export function textOfValue(value: unknown): string {
  return value === undefined ? "" : stringify(value, WIDTH).trimEnd();
}

/** undefined: the text is empty. `{{amount}}` is a text, with or without quotation marks. Throws if the rest is not YAML. */
export function valueOfText(text: string): unknown {
  if (text.trim() === "") return undefined;
  const lines = text.split("\n");
  // YAML ends a value after `}}`: a line that goes on there is quoted, and what is left is read again.
  for (let tries = 0; tries <= lines.length; tries += 1) {
    const source = lines.join("\n");
    const document = parseDocument(source, { prettyErrors: true });
    const error = document.errors[0];
    if (!error) return plain(withPlaceholders(document, source));
    const at = (error.linePos?.[0]?.line ?? 1) - 1;
    const quoted = quotedLine(lines[at] ?? "");
    if (quoted === null) throw new Error(error.message.split("\n")[0]?.replace(/:$/, ""));
    lines[at] = quoted;
  }
  throw new Error("");
}

/** YAML reads `{{amount}}` as a mapping with a mapping as its key, which no document has. */
function withPlaceholders(document: ReturnType<typeof parseDocument>, source: string): ReturnType<typeof parseDocument> {
  visit(document, {
    Map(_key, node) {
      const [first, ...more] = node.items;
      if (!node.flow || !node.range || more.length > 0 || !isPair(first) || !isMap(first.key) || first.value !== null) return undefined;
      return new Scalar(source.slice(node.range[0], node.range[1]));
    },
  });
  return document;
}

const UNQUOTED = /^(\s*(?:- +)*(?:[^\s"'{}[\]#:,][^"'{}[\]#:,]*: +)?)(\{\{.*\}\}.*?)\s*$/;

function quotedLine(line: string): string | null {
  const found = UNQUOTED.exec(line);
  return found ? `${found[1]}${JSON.stringify(found[2])}` : null;
}

function plain(document: ReturnType<typeof parseDocument>): unknown {
  try {
    return document.toJS({ maxAliasCount: ALIASES }) as unknown;
  } catch {
    return null;
  }
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

function applied(text: string, edits: Edit[], offset: number): string {
  let made = "";
  let at = 0;
  for (const each of edits.toSorted((left, right) => left.from - right.from || left.to - right.to)) {
    made += text.slice(at, each.from - offset) + each.text;
    at = each.to - offset;
  }
  return made + text.slice(at);
}

class Writer {
  constructor(
    private readonly text: string,
    private readonly format: Format,
  ) {}

  map(node: YAMLMap, after: Record<string, unknown>): Edit[] {
    const pairs = node.items as Pair<Node, Node | null>[];
    const kept = pairs.filter((each) => after[keyOf(each)] !== undefined);
    const known = new Set(pairs.map(keyOf));
    const added = Object.entries(after).filter(([key, value]) => !known.has(key) && value !== undefined);
    if (kept.length === 0) return pairs.length === 0 && added.length === 0 ? [] : [this.replaced(node, after)];
    const edits = kept.flatMap((each) => this.value(each, after[keyOf(each)]));
    edits.push(...(node.flow ? this.removedInFlow(pairs, after) : this.removedInBlock(pairs, after)));
    if (added.length > 0) edits.push(node.flow ? this.addedInFlow(pairs, kept, added) : this.addedInBlock(pairs, added));
    return edits;
  }

  private value(pair: Pair<Node, Node | null>, after: unknown): Edit[] {
    const node = pair.value;
    if (!isNode(node) || !node.range) return [{ from: this.end(pair), to: this.end(pair), text: ` ${this.inline(after)}` }];
    return this.node(node, after);
  }

  node(node: Node, after: unknown): Edit[] {
    if (isMap(node) && isRecord(after)) return this.map(node as YAMLMap, after);
    if (isSeq(node) && Array.isArray(after)) return this.seq(node as YAMLSeq, after);
    if (isScalar(node) && node.value === after) return [];
    return [this.replaced(node, after)];
  }

  private seq(node: YAMLSeq, after: unknown[]): Edit[] {
    const items = node.items as Node[];
    const before = items.map((each) => nameOf(each.toJSON() as unknown));
    const names = after.map(nameOf);
    const moved = names.filter((name, at) => name !== before[at]).length;
    if (items.length === after.length && moved <= 1) return items.flatMap((each, at) => this.node(each, after[at]));
    if (items.length === 0 || after.length === 0) return [this.replaced(node, after)];
    return node.flow ? [this.flowItems(items, before, after)] : this.blockItems(items, before, after, node);
  }

  private flowItems(items: Node[], before: string[], after: unknown[]): Edit {
    const first = items[0]!;
    const last = items.at(-1)!;
    const between = items[1] ? this.text.slice(this.endOf(first), startOf(items[1])) : ", ";
    const free = new Map(items.map((each, at) => [at, each]));
    const parts = after.map((value) => {
      const found = take(free, before, value);
      if (found === undefined) return this.inline(value);
      return applied(this.text.slice(startOf(found), this.endOf(found)), this.node(found, value), startOf(found));
    });
    return { from: startOf(first), to: this.endOf(last), text: parts.join(between) };
  }

  private blockItems(items: Node[], before: string[], after: unknown[], node: YAMLSeq): Edit[] {
    const dashes = items.map((each) => this.text.lastIndexOf("-", startOf(each)));
    const start = this.lineStart(dashes[0]!);
    const indent = this.text.slice(start, dashes[0]);
    if (indent.trim() !== "") return [this.replaced(node, after)];
    const ends = items.map((each) => this.lineEnd(this.endOf(each)));
    const free = new Map(items.map((each, at) => [at, { node: each, from: at === 0 ? start : ends[at - 1]! + 1, to: ends[at]! }]));
    const isFlow = items.every((each) => (isMap(each) || isSeq(each)) && (each as YAMLMap).flow === true);
    const lines = after.map((value) => {
      const found = take(free, before, value);
      if (found !== undefined) return applied(this.text.slice(found.from, found.to), this.node(found.node, value), found.from);
      const made = isFlow ? this.inline(value) : indented(stringify(value, WIDTH).trimEnd(), `${indent}  `).trimStart();
      return `${indent}- ${made}`;
    });
    return [{ from: start, to: ends.at(-1)!, text: lines.join("\n") }];
  }

  private removedInFlow(pairs: Pair<Node, Node | null>[], after: Record<string, unknown>): Edit[] {
    return runs(pairs, (each) => after[keyOf(each)] === undefined).map(([first, last]) => {
      const next = pairs[last + 1];
      if (next) return { from: startOf(pairs[first]!.key), to: startOf(next.key), text: "" };
      return { from: this.end(pairs[first - 1]!), to: this.end(pairs[last]!), text: "" };
    });
  }

  private removedInBlock(pairs: Pair<Node, Node | null>[], after: Record<string, unknown>): Edit[] {
    return runs(pairs, (each) => after[keyOf(each)] === undefined).map(([first, last]) => {
      const end = this.lineEnd(this.end(pairs[last]!));
      if (!pairs[last + 1]) return { from: this.lineEnd(this.end(pairs[first - 1]!)), to: end, text: "" };
      const next = end + this.text.slice(end).search(/\S/);
      return { from: startOf(pairs[first]!.key), to: next, text: "" };
    });
  }

  private addedInFlow(pairs: Pair<Node, Node | null>[], kept: Pair<Node, Node | null>[], added: [string, unknown][]): Edit {
    const between = pairs[1] ? this.text.slice(this.end(pairs[0]!), startOf(pairs[1].key)) : ", ";
    const at = this.end(kept.at(-1)!);
    const text = added.map(([key, value]) => `${between}${this.format === "json" ? JSON.stringify(key) : inlineText(key)}: ${this.inline(value)}`);
    return { from: at, to: at, text: text.join("") };
  }

  private addedInBlock(pairs: Pair<Node, Node | null>[], added: [string, unknown][]): Edit {
    const key = startOf(pairs[0]!.key);
    const indent = " ".repeat(key - this.lineStart(key));
    const at = this.lineEnd(this.end(pairs.at(-1)!));
    const text = added.map(([name, value]) => `\n${indented(stringify({ [name]: value }, WIDTH).trimEnd(), indent)}`);
    return { from: at, to: at, text: text.join("") };
  }

  /** A whole value. Of a block, in its own lines, unless what is written is short. */
  private replaced(node: Node, after: unknown): Edit {
    const from = startOf(node);
    const to = Math.max(this.endOf(node), from);
    const isBlock = (isMap(node) || isSeq(node)) && (node as YAMLMap).flow !== true;
    if (!isBlock) {
      const gap = this.text[from - 1] === ":" ? " " : "";
      return { from, to, text: gap + this.inline(after) };
    }
    const colon = this.text.slice(0, from).search(/[:-]\s*$/);
    const isNested = after !== null && typeof after === "object" && Object.keys(after).length > 0;
    if (colon < 0 || isNested) {
      const indent = " ".repeat(from - this.lineStart(from));
      return { from, to, text: indented(stringify(after, WIDTH).trimEnd(), indent).trimStart() };
    }
    return { from: colon + 1, to, text: ` ${this.inline(after)}` };
  }

  private inline(value: unknown): string {
    return this.format === "json" ? JSON.stringify(value) : inlineText(value);
  }

  private end(pair: Pair<Node, Node | null>): number {
    const value = pair.value;
    if (isNode(value) && value.range && this.endOf(value) > startOf(pair.key)) return this.endOf(value);
    const key = pair.key.range![1];
    return key + Math.max(0, this.text.slice(key).search(/:/)) + 1;
  }

  private endOf(node: Node): number {
    const from = startOf(node);
    let end = node.range![1];
    while (end > from && /\s/.test(this.text[end - 1]!)) end -= 1;
    return end;
  }

  private lineStart(at: number): number {
    return this.text.lastIndexOf("\n", at - 1) + 1;
  }

  private lineEnd(at: number): number {
    const found = this.text.indexOf("\n", at);
    return found < 0 ? this.text.length : found;
  }
}

function inlineText(value: unknown): string {
  return stringify(value, { ...WIDTH, collectionStyle: "flow", blockQuote: false }).trimEnd();
}

function take<T>(free: Map<number, T>, before: string[], value: unknown): T | undefined {
  const name = nameOf(value);
  for (const [at, found] of free) {
    if (before[at] !== name) continue;
    free.delete(at);
    return found;
  }
  return undefined;
}

/** Stretches of neighbours that are alike. */
function runs<T>(items: T[], isWanted: (item: T) => boolean): [number, number][] {
  const found: [number, number][] = [];
  items.forEach((each, at) => {
    const last = found.at(-1);
    if (!isWanted(each)) return;
    if (last && last[1] === at - 1) last[1] = at;
    else found.push([at, at]);
  });
  return found;
}

function indented(text: string, indent: string): string {
  return text.split("\n").map((line) => (line === "" ? line : indent + line)).join("\n");
}

function keyOf(pair: Pair<Node, Node | null>): string {
  return isScalar(pair.key) ? String(pair.key.value) : String(pair.key);
}

function startOf(node: Node): number {
  return node.range![0];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
