// No text outside the catalogue: JSX text, and attributes that people read. Keys that nobody uses fail too.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

const SRC = new URL("../src/", import.meta.url).pathname;
const READ = new Set(["aria-label", "title", "placeholder", "alt", "label", "aria-description", "hint"]);
const NAMES = new Set(["Holdfast", "Esc"]);
const files = readdirSync(SRC, { recursive: true }).filter((name) => /\.tsx?$/.test(name));
const wrong = [];

const isText = (text) => /\p{L}{2,}/u.test(text) && !NAMES.has(text.trim());

for (const name of files.filter((each) => each.endsWith(".tsx"))) {
  const source = ts.createSourceFile(name, readFileSync(join(SRC, name), "utf8"), ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const note = (node, text) => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    wrong.push(`src/${name}:${line + 1}: ${JSON.stringify(text.trim())} belongs into locales/en`);
  };
  const visit = (node) => {
    if (ts.isJsxText(node) && isText(node.text)) note(node, node.text);
    if (ts.isJsxExpression(node) && node.expression && ts.isStringLiteral(node.expression) && ts.isJsxElement(node.parent)
      && isText(node.expression.text)) note(node, node.expression.text);
    if (ts.isJsxAttribute(node) && READ.has(node.name.getText()) && node.initializer && ts.isStringLiteral(node.initializer)
      && isText(node.initializer.text)) note(node, node.initializer.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
}

const code = files.filter((name) => !name.startsWith("locales/")).map((name) => readFileSync(join(SRC, name), "utf8")).join("\n");
// The words of buttons that WB-12 lists are there before the screen that has the button.
for (const name of files.filter((each) => each.startsWith("locales/en/") && !each.endsWith("/words.ts"))) {
  for (const [, key] of readFileSync(join(SRC, name), "utf8").matchAll(/^ {2}"?([\w.]+)"?:/gm)) {
    if (!code.includes(`"${key}"`) && !code.includes(`${key}:`)) wrong.push(`src/${name}: nobody uses ${key}`);
  }
}

if (wrong.length > 0) {
  process.stderr.write(`${wrong.join("\n")}\n`);
  process.exit(1);
}
