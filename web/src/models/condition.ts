/** The conditions of forms, as the server reads them: `amount > 100 && (decision == 'approve' || context.vip)`. */
import { type Path, type Resolve, MISSING, contains, isEqual, isOrdered, isTrue } from "./conditionValues";
import { type Token, tokensOf } from "./conditionTokens";

type Evaluate = (resolve: Resolve) => unknown;
enum Power { choose = 1, any, all, notWord, compare, not }

const COMPARISONS = new Set(["===", "!==", "==", "!=", ">=", "<=", ">", "<", "in", "not"]);
const DEEPEST = 100;
const made = new Map<string, Evaluate | null>();

/** What a condition gives; null: it is not one, which only the server can tell. */
export function conditionOf(text: string): Evaluate | null {
  let found = made.get(text);
  if (found === undefined) {
    try {
      found = new Parser(tokensOf(text)).whole();
    } catch {
      found = null;
    }
    made.set(text, found);
  }
  return found;
}

class Parser {
  #place = 0;
  #depth = 0;

  constructor(readonly tokens: readonly Token[]) {}

  whole(): Evaluate {
    const found = this.#expression(Power.choose);
    if (this.#next) throw new SyntaxError("more than one expression");
    return found;
  }

  get #next(): Token | undefined {
    return this.tokens[this.#place];
  }

  #sees(operator: string): boolean {
    return this.#next?.kind === "operator" && this.#next.value === operator;
  }

  #accept(operator: string): boolean {
    if (!this.#sees(operator)) return false;
    this.#place += 1;
    return true;
  }

  #expect(operator: string): void {
    if (!this.#accept(operator)) throw new SyntaxError(`expected ${operator}`);
  }

  #take(): Token {
    const found = this.#next;
    if (!found) throw new SyntaxError("expected a value");
    this.#place += 1;
    return found;
  }

  #expression(power: Power): Evaluate {
    let found = this.#operand(power);
    if (power <= Power.compare) found = this.#comparison(found);
    if (power <= Power.all && this.#sees("&&")) found = this.#chain(found, "&&", Power.notWord);
    if (power <= Power.any && this.#sees("||")) found = this.#chain(found, "||", Power.all);
    if (power <= Power.choose && this.#accept("?")) {
      const [test, then] = [found, this.#nested(Power.choose)];
      this.#expect(":");
      const otherwise = this.#nested(Power.choose);
      return (resolve) => (isTrue(test(resolve)) ? then(resolve) : otherwise(resolve));
    }
    return found;
  }

  #chain(first: Evaluate, operator: string, power: Power): Evaluate {
    const parts = [first];
    while (this.#accept(operator)) parts.push(this.#expression(power));
    return operator === "&&"
      ? (resolve) => parts.every((each) => isTrue(each(resolve)))
      : (resolve) => parts.some((each) => isTrue(each(resolve)));
  }

  #operand(power: Power): Evaluate {
    const token = this.#take();
    if (token.kind === "name") return this.#named(token.value as Path);
    if (token.kind === "literal") return () => token.value;
    if (token.value === "(") {
      const found = this.#nested(Power.choose);
      this.#expect(")");
      return found;
    }
    if (token.value === "[") return this.#list();
    const isWord = token.value === "not" && power <= Power.notWord;
    if (token.value !== "!" && !isWord) throw new SyntaxError("expected a value");
    const inner = this.#nested(isWord ? Power.compare : Power.not);
    return (resolve) => !isTrue(inner(resolve));
  }

  #named(path: Path): Evaluate {
    if (path.length === 1 && path[0] === "exists" && this.#accept("(")) {
      const asked = this.#take();
      if (asked.kind !== "name") throw new SyntaxError("expected a name");
      this.#expect(")");
      return (resolve) => resolve(asked.value as Path) !== MISSING;
    }
    if (!this.#accept("|")) return (resolve) => resolve(path);
    const word = this.#take();
    if (word.kind !== "name" || (word.value as Path).join(".") !== "default") throw new SyntaxError("expected default");
    this.#expect("(");
    const fallback = this.#nested(Power.choose);
    this.#expect(")");
    return (resolve) => {
      const found = resolve(path);
      return found === MISSING ? fallback(resolve) : found;
    };
  }

  #list(): Evaluate {
    const parts: Evaluate[] = [];
    while (!this.#accept("]")) {
      if (parts.length > 0) this.#expect(",");
      parts.push(this.#nested(Power.choose));
    }
    return (resolve) => parts.map((each) => each(resolve)).map((each) => (each === MISSING ? null : each));
  }

  #comparison(left: Evaluate): Evaluate {
    const operator = this.#takeComparison();
    if (operator === null) return left;
    const right = this.#expression(Power.not);
    if (this.#takeComparison() !== null) throw new SyntaxError("comparisons do not chain");
    return (resolve) => compared(operator, left(resolve), right(resolve));
  }

  #takeComparison(): string | null {
    const token = this.#next;
    if (token?.kind !== "operator" || !COMPARISONS.has(String(token.value))) return null;
    this.#place += 1;
    if (token.value !== "not") return String(token.value);
    this.#expect("in");
    return "not in";
  }

  #nested(power: Power): Evaluate {
    this.#depth += 1;
    if (this.#depth > DEEPEST) throw new SyntaxError("nested too deeply");
    const found = this.#expression(power);
    this.#depth -= 1;
    return found;
  }
}

function compared(operator: string, left: unknown, right: unknown): boolean {
  if (operator === "==") return isEqual(left, right);
  if (operator === "!=") return !isEqual(left, right);
  if (operator === "===" || operator === "!==") {
    const isSame = left !== MISSING && right !== MISSING && isEqual(left, right);
    return isSame === (operator === "===");
  }
  if (operator === "in") return contains(right, left);
  if (operator === "not in") return !contains(right, left);
  return isOrdered(operator, left, right);
}
