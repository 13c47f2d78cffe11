// No text outside the catalogue: what an element has between its tags, and attributes that people read, also as parts
// of an expression. Keys that nobody uses fail too.
import { readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import ts from "typescript";

const SRC = process.argv[2] ? resolve(process.argv[2]) : new URL("../src/", import.meta.url).pathname;
const READ = new Set(["aria-label", "title", "placeholder", "alt", "label", "aria-description", "aria-roledescription", "aria-valuetext", "hint", "example", "text", "empty"]);
const NAMES = new Set(["Holdfast", "Esc"]);
const COMPARED = new Set([ts.SyntaxKind.EqualsEqualsEqualsToken, ts.SyntaxKind.ExclamationEqualsEqualsToken, ts.SyntaxKind.InKeyword]);
const files = readdirSync(SRC, { recursive: true }).filter((name) => /\.tsx?$/.test(name));
const wrong = [];

const isText = (text) => /\p{L}{2,}/u.test(text) && !NAMES.has(text.trim());

/** The literals that this expression gives as its value; what is given to a function or compared is no text of the page. */
function literals(node) {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return [node];
  if (ts.isTemplateExpression(node)) {
    return [node.head, ...node.templateSpans.flatMap((span) => [...literals(span.expression), span.literal])];
  }
  if (ts.isConditionalExpression(node)) return [...literals(node.whenTrue), ...literals(node.whenFalse)];
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node) || ts.isNonNullExpression(node)) return literals(node.expression);
  if (ts.isBinaryExpression(node)) return COMPARED.has(node.operatorToken.kind) ? [] : [...literals(node.left), ...literals(node.right)];
  if (ts.isArrayLiteralExpression(node)) return node.elements.flatMap(literals);
  if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) return literals(node.expression.expression);
  return [];
}

for (const name of files.filter((each) => each.endsWith(".tsx"))) {
  const source = ts.createSourceFile(name, readFileSync(join(SRC, name), "utf8"), ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const note = (node) => {
    if (!isText(node.text)) return;
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    wrong.push(`src/${name}:${line + 1}: ${JSON.stringify(node.text.trim())} belongs into locales/en`);
  };
  const visit = (node) => {
    if (ts.isJsxText(node)) note(node);
    const isChild = ts.isJsxExpression(node) && (ts.isJsxElement(node.parent) || ts.isJsxFragment(node.parent));
    if (isChild && node.expression) literals(node.expression).forEach(note);
    if (ts.isJsxAttribute(node) && READ.has(node.name.getText()) && node.initializer) {
      const given = ts.isJsxExpression(node.initializer) ? node.initializer.expression : node.initializer;
      if (given) literals(given).forEach(note);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
}

const code = files.filter((name) => !name.startsWith("locales/")).map((name) => readFileSync(join(SRC, name), "utf8")).join("\n");
// The words of buttons that WB-12 lists are there before the screen that has the button; events are named by the
// server, and the code editor asks by itself.
for (const name of files.filter((each) => each.startsWith("locales/en/") && !/\/(words|events|noticeTopics|codeEditor)\.ts$/.test(each))) {
  for (const [, key] of readFileSync(join(SRC, name), "utf8").matchAll(/^ {2}"?([\w.]+)"?:/gm)) {
    if (!code.includes(`"${key}"`) && !code.includes(`${key}:`)) wrong.push(`src/${name}: nobody uses ${key}`);
  }
}

if (wrong.length > 0) {
  process.stderr.write(`${wrong.join("\n")}\n`);
  process.exit(1);
}
