/** Names that a document uses in more than one place: ids of nodes and of options, followed where they change. */
import { type Config, type FlowData, isRecord, nodesOf, recordIn } from "./documentData";

/** Keys whose text is an expression; other texts have theirs between `{{` and `}}`. */
const EXPRESSIONS = new Set(["when", "while", "until", "over", "if", "visible_if", "required_if", "readonly_if"]);
/** Keys whose whole text is the id of a node. */
const IDS = new Set(["of"]);

/** `{{review.paid}}`, conditions and `branch:review` with the node's new id. What an input or a variable has the name
 * of may mean that, and stays. */
export function renamedReferences(data: FlowData, id: string, name: string): FlowData {
  const known = [recordIn(recordIn(data, "input"), "properties"), recordIn(data, "variables")];
  if (known.some((each) => Object.hasOwn(each, id))) return data;
  const inside = (value: unknown, key: string): unknown => {
    if (Array.isArray(value)) return value.map((each) => inside(each, key));
    if (isRecord(value)) return Object.fromEntries(Object.entries(value).map(([each, found]) => [each, inside(found, each)]));
    return typeof value === "string" ? inText(value, key, id, name) : value;
  };
  const nodes = listIn(data, "nodes").map((each) => (isRecord(each) && "config" in each ? { ...each, config: inside(each["config"], "config") } : each));
  const edges = listIn(data, "edges").map((each) => (isRecord(each) && "when" in each ? { ...each, when: inside(each["when"], "when") } : each));
  return { ...data, ...("nodes" in data ? { nodes } : {}), ...("edges" in data ? { edges } : {}) };
}

function inText(text: string, key: string, id: string, name: string): string {
  if (IDS.has(key)) return text === id ? name : text;
  if (text === `branch:${id}`) return `branch:${name}`;
  if (EXPRESSIONS.has(key) && !text.includes("{{")) return inExpression(text, id, name);
  return text.replaceAll(/\{\{.*?\}\}/gs, (each) => inExpression(each, id, name));
}

/** Not within quotation marks, and not as the field of something else. */
function inExpression(text: string, id: string, name: string): string {
  const word = new RegExp(`("(?:[^"\\\\]|\\\\.)*"|'(?:[^'\\\\]|\\\\.)*')|(?<![\\w.-])${id}(?![\\w-])`, "g");
  return text.replaceAll(word, (found, quoted: string | undefined) => quoted ?? (found === id ? name : found));
}

/** The edges of a node, after one of its options or cases was given another id. */
export function renamedPorts(before: FlowData, after: FlowData, id: string): FlowData {
  const [old, now] = [before, after].map((each) => choicesOf(nodesOf(each).find((node) => node.id === id)?.config ?? {}));
  if (old === undefined || now === undefined || old.length !== now.length) return after;
  const places = old.flatMap((each, at) => (each === now[at] ? [] : [at]));
  const [from, to] = [old[places[0] ?? -1], now[places[0] ?? -1]];
  // Two that have one name in between cannot be told apart.
  if (places.length !== 1 || from === undefined || to === undefined || old.includes(to) || now.includes(from)) return after;
  const edges = listIn(after, "edges").map((each) => {
    if (!isRecord(each) || each["source"] !== id) return each;
    const key = "source_port" in each ? "source_port" : "sourceHandle";
    return each[key] === from ? { ...each, [key]: to } : each;
  });
  return "edges" in after ? { ...after, edges } : after;
}

function choicesOf(config: Config): string[] {
  const sections = listIn(config, "sections").filter(isRecord).filter((each) => each["type"] === "decision");
  const rows = [...listIn(config, "options"), ...listIn(config, "cases"), ...sections.flatMap((each) => listIn(each, "options"))];
  return rows.map((each) => String(isRecord(each) ? (each["id"] ?? "") : each));
}

function listIn(given: Config, key: string): unknown[] {
  const found = given[key];
  return Array.isArray(found) ? found : [];
}
