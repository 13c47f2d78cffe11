/** Checks an answer against its form as the server does; the server decides. */
import { conditionOf } from "./condition";
import { isMapping, isTrue, resolverOf } from "./conditionValues";
import { writeJson } from "./json";
import { type FieldError, FieldValueError, words } from "./formError";
import { type Field, isEmpty, isSameValue, readValue } from "./formValue";
import { firstOf, grouped, quoted } from "./pythonText";

export type Sections = { sections: readonly Field[]; allow_extra?: unknown };
/** `visible`, `required`, `readonly`: the fields, and texts, for which that holds now. `edited`: those that differ from their proposal. */
export type Checked = {
  errors: FieldError[];
  visible: Set<string>;
  required: Set<string>;
  readonly: Set<string>;
  edited: string[];
  values: Record<string, unknown>;
};

const LARGEST = 256 * 1024;
const DEEPEST = 20;
const TEXTS = new Set(["text", "textarea", "markdown", "code", "diff", "phone", "user", "secret-reference"]);

export function checkAnswer(form: Sections, context: unknown, decision: string | null, data: unknown): Checked {
  const given = data ?? {};
  const fault = oversize(given);
  if (fault) return { ...new Review(form, context, decision, {}).result(), errors: [fault], edited: [] };
  return new Review(form, context, decision, given as Record<string, unknown>).result();
}

function oversize(given: unknown): FieldError | null {
  if (!isMapping(given)) return { field: "", code: "type", message: words("notObject") };
  const size = new TextEncoder().encode(writeJson(given)).length;
  if (size > LARGEST) return { field: "", code: "size", message: words("tooMuch", { size: grouped(size), most: grouped(LARGEST) }) };
  return isDeeper(given, DEEPEST) ? { field: "", code: "depth", message: words("tooDeep", { most: String(DEEPEST) }) } : null;
}

function isDeeper(value: unknown, left: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return left === 0 || Object.values(value).some((each) => isDeeper(each, left - 1));
}

class Review {
  readonly #checked: Checked = { errors: [], visible: new Set(), required: new Set(), readonly: new Set(), edited: [], values: {} };
  readonly #primary: Field | undefined;
  /** What conditions read: earlier fields that were shown, and the decision itself. */
  readonly #seen: Record<string, unknown>;

  constructor(readonly form: Sections, context: unknown, readonly decision: string | null, readonly given: Readonly<Record<string, unknown>>) {
    this.#primary = form.sections.find((each) => each["type"] === "decision");
    this.#seen = { context, decision, ...(this.#primary ? { [String(this.#primary["field"])]: decision } : {}) };
  }

  result(): Checked {
    const asked = this.form.sections.filter((each) => each["type"] !== "context");
    for (const section of this.form.sections) {
      if (section["type"] !== "context") this.#take(section);
      else if (this.#holds(section, "visible_if", true)) this.#checked.visible.add(String(section["field"]));
    }
    const names = new Set(asked.map((each) => String(each["field"])));
    for (const name of Object.keys(this.given).filter((each) => !names.has(each)).toSorted()) {
      if (this.form.allow_extra) this.#checked.values[name] = this.given[name];
      else this.#wrong(firstOf(name, 100), "unknown", words("unknown"));
    }
    return this.#checked;
  }

  #take(section: Field): void {
    const name = String(section["field"]);
    if (section === this.#primary) {
      const said = Object.hasOwn(this.given, name) ? this.given[name] : this.decision;
      if (said !== this.decision) this.#wrong(name, "decision", words("otherDecision", { decision: this.decision === null ? "None" : quoted(this.decision) }));
      this.#checked.values[name] = this.decision;
    } else if (this.#holds(section, "visible_if", true)) {
      this.#checked.visible.add(name);
      this.#field(section, name);
    } else if (Object.hasOwn(this.given, name)) this.#wrong(name, "hidden", words("hidden"));
  }

  #field(section: Field, name: string): void {
    const value = Object.hasOwn(this.given, name) ? this.given[name] : section["default"];
    if (section["readonly"] || this.#holds(section, "readonly_if", false)) {
      this.#checked.readonly.add(name);
      return this.#unchanged(section, name, value);
    }
    const isNeeded = section["type"] === "decision" || Boolean(section["required"]) || this.#holds(section, "required_if", false);
    if (isNeeded) this.#checked.required.add(name);
    if (isEmpty(value)) {
      if (isNeeded) this.#wrong(name, "required", words("missing"));
      else this.#keep(section, name, nothing(section, value));
      return;
    }
    try {
      this.#keep(section, name, read(section, value));
    } catch (error) {
      if (!(error instanceof FieldValueError)) throw error;
      this.#wrong(name, error.code, error.message);
    }
  }

  #unchanged(section: Field, name: string, value: unknown): void {
    const shown = proposed(section, "default");
    if (isSameValue(value, section["default"]) || isRead(section, value, shown)) this.#keep(section, name, shown);
    else this.#wrong(name, "readonly", words("readonly"));
  }

  #keep(section: Field, name: string, value: unknown): void {
    this.#checked.values[name] = this.#seen[name] = value;
    const proposal = "original" in section ? "original" : "default";
    if (proposal in section && !isSameValue(proposed(section, proposal), value)) this.#checked.edited.push(name);
  }

  #holds(section: Field, condition: string, otherwise: boolean): boolean {
    const text = section[condition];
    if (typeof text !== "string") return otherwise;
    const found = conditionOf(text);
    // What cannot be judged here is shown: the server says if it should not have been.
    return found === null ? condition === "visible_if" : isTrue(found(resolverOf(this.#seen)));
  }

  #wrong(field: string, code: string, message: string): void {
    this.#checked.errors.push({ field, code, message });
  }
}

/** The value of an empty field: null, except for a text that may be empty and for a proposed value. */
function nothing(section: Field, value: unknown): unknown {
  if (isSameValue(value, section["default"])) return value ?? null;
  return typeof value === "string" && TEXTS.has(String(section["kind"])) ? "" : null;
}

function read(section: Field, value: unknown): unknown {
  return readValue({ kind: "select", ...section }, value);
}

function isRead(section: Field, value: unknown, expected: unknown): boolean {
  try {
    return isSameValue(read(section, value), expected);
  } catch {
    return false;
  }
}

/** As it would be stored: 100 and "100" are the same amount. */
function proposed(section: Field, name: string): unknown {
  const value = section[name];
  if (isEmpty(value)) return null;
  try {
    return read(section, value);
  } catch {
    return value;
  }
}
