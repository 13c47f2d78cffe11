/** A text from elsewhere that is to replace a document: in the document's form, and with its name. */
import { type FlowData, partsIn, textIn } from "./documentData";
import { type Format, type TextProblem, readText, rewriteText } from "./documentText";

export type Imported = { text: string; problem: null; nodes: number; edges: number; otherName: string; isRewritten: boolean } | { text: ""; problem: TextProblem };

export function formatOf(text: string): Format {
  return text.trimStart().startsWith("{") ? "json" : "yaml";
}

/** `otherName`: of the text, where it is not the document's. `isRewritten`: in the other form, so without its comments. */
export function importedText(given: string, name: string, format: Format): Imported {
  const from = formatOf(given);
  const { data, problem } = readText(given, from);
  if (data === null) return { text: "", problem: problem ?? { message: "", line: 1, column: 1 } };
  const named: FlowData = { ...data, name };
  const isRewritten = from !== format;
  const text = isRewritten ? rewriteText("", format, named) : rewriteText(given, format, named);
  const other = textIn(data, "name");
  return { text, problem: null, nodes: partsIn(data, "nodes").length, edges: partsIn(data, "edges").length, otherName: other === name ? "" : other, isRewritten };
}
