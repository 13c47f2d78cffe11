/** A form: its sections, what is asked of whom, and the data of an answer. The server decides what is valid. */
import { isMapping } from "./conditionValues";
import { type Sections, checkAnswer } from "./formCheck";
import { problemsIn } from "./formSchema";
import { type Section, sectionOf, textOf } from "./formSection";
import { isEdited, typingFault, valueOf } from "./formTyped";
import { isEmpty } from "./formValue";
import { type InputField, besideFields, inputFields, inputFrom, valuesFrom } from "./schemaForm";

export { isMapping as isRecord } from "./conditionValues";
export type { Choice, Section } from "./formSection";
export { isEdited, valueOf } from "./formTyped";
export { isEmpty } from "./formValue";

export type Values = Readonly<Record<string, unknown>>;
export type FormKind = "form" | "arguments" | "data" | "none";
export type Form = {
  kind: FormKind;
  sections: Section[];
  /** What is checked: the sections as their author wrote them, or the JSON Schema of the answer. */
  rules: Sections | null;
  schema: unknown;
  /** The arguments of a tool: their fields, and those of its call. */
  input: InputField[];
  given: Record<string, unknown>;
};
export type Asked = { values: Values; decision: string | null; context: unknown };
/** How a form stands with what was typed: what is asked for and what is wrong; and the data of the answer. */
export type Standing = {
  visible: ReadonlySet<string>;
  required: ReadonlySet<string>;
  readonly: ReadonlySet<string>;
  errors: Record<string, string>;
};
export type Review = Standing & { data: Record<string, unknown> | null };

/** The field of a hold that has a schema, but no form. */
export const DATA = "data";
/** The field for a message to the agent; no argument can have this name. */
export const INSTRUCTIONS = "holdfast.instructions";
/** The decision that lets a tool run. */
export const APPROVE = "approve";
const NOTHING = { rules: null, schema: null, input: [], given: {} };

export function formOf(schema: unknown, context: unknown): Form {
  const form = at(schema, "x-form");
  if (isMapping(form) && Array.isArray(form["sections"])) return sectionsForm(form["sections"], form["allow_extra"] === true);
  const call = at(at(schema, "properties"), "arguments");
  if (isMapping(call) && isMapping(context) && "tool" in context) return callForm(schema, call, isMapping(context["arguments"]) ? context["arguments"] : {});
  if (isMapping(schema)) return dataForm(schema);
  return { ...NOTHING, kind: "none", sections: [] };
}

/** An answer with named parts has a field for each; any other is written as JSON. */
function dataForm(schema: Record<string, unknown>): Form {
  const input = FREE.some((keyword) => keyword in schema) ? [] : inputFields(schema, null);
  if (input.length === 0) return { ...NOTHING, kind: "data", sections: [sectionOf({ field: DATA, kind: "json" })], schema };
  const first = valuesFrom(input, null);
  return { ...NOTHING, kind: "data", sections: input.map(({ section }) => ({ ...section, start: first[section.field] })), schema, input };
}

/** What fields cannot show of an answer as a whole. */
const FREE = ["anyOf", "oneOf", "allOf", "not", "if", "enum", "const", "patternProperties", "$ref"];

/** Whether the answer is one field, written as JSON. */
export function isWhole(form: Form): boolean {
  return form.kind === "data" && form.input.length === 0;
}

export function sectionsForm(given: readonly unknown[], isOpen = false): Form {
  // A text has no name: it gets one that no field can have.
  const sections = given.filter(isMapping).map((each, place) => sectionOf(each["type"] === "context" ? { ...each, field: `context:${place}` } : each));
  const first = sections.find((each) => each.type === "decision");
  const rules = { sections: sections.map((each) => each.raw), ...(isOpen ? { allow_extra: true } : {}) };
  return { ...NOTHING, kind: "form", sections: sections.filter((each) => each !== first), rules };
}

/** Arguments that the tool does not name keep their own fields: they are shown too. */
function callForm(schema: unknown, call: Record<string, unknown>, given: Record<string, unknown>): Form {
  const named = isMapping(call["properties"]) ? call["properties"] : {};
  const others = Object.fromEntries(Object.keys(given).filter((name) => !Object.hasOwn(named, name)).map((name) => [name, kindOf(given[name])]));
  // What it refers to may be defined beside it, or for the whole answer.
  const defined = [at(schema, "$defs"), at(call, "$defs")].filter(isMapping);
  const input = inputFields({ ...call, $defs: Object.assign({}, ...defined) as unknown, properties: { ...named, ...others } }, given);
  const proposed = valuesFrom(input, given);
  const sections = input.map(({ section }) => {
    const proposal = proposed[section.field];
    return { ...section, start: proposal, proposal, hasProposal: proposal !== undefined };
  });
  return { ...NOTHING, kind: "arguments", sections: [...sections, sectionOf({ field: INSTRUCTIONS, kind: "textarea" })], schema, input, given };
}

function kindOf(value: unknown): unknown {
  const kind = typeof value;
  return kind === "string" || kind === "boolean" || kind === "number" ? { type: kind } : {};
}

// ---- values

/** What the form shows first: what was typed before, else what the form begins with. */
export function firstValues(form: Form, draft: Values): Record<string, unknown> {
  const inputs = form.sections.filter((each) => each.type !== "context");
  return Object.fromEntries(inputs.map((each) => [each.field, Object.hasOwn(draft, each.field) ? draft[each.field] : each.start]));
}

export function reviewOf(form: Form, asked: Asked): Review {
  const faults = Object.fromEntries(form.sections.map((each) => [each.field, typingFault(each, asked.values[each.field])]).filter(([, fault]) => fault));
  const found = form.kind === "form" ? reviewSections(form, asked) : reviewSchema(form, asked);
  const shown = Object.entries(faults).filter(([field]) => found.visible.has(field!)) as [string, string][];
  return { ...found, errors: { ...found.errors, ...Object.fromEntries(shown) } };
}

/** Without fields whose condition is not met by the other values, as the plain page leaves them out. */
function reviewSections(form: Form, { values, decision, context }: Asked): Review {
  const inputs = form.sections.filter((each) => each.type !== "context" && each.raw["readonly"] !== true);
  let data: Record<string, unknown> = Object.fromEntries(inputs.map((each) => [each.field, valueOf(each, values[each.field])]));
  for (;;) {
    const checked = checkAnswer(form.rules!, context, decision, data);
    const left = new Set(checked.errors.filter((each) => each.code === "hidden" || each.code === "readonly").map((each) => each.field));
    if (!Object.keys(data).some((name) => left.has(name))) {
      const errors = Object.fromEntries(checked.errors.map((each) => [each.field, each.message]));
      return { visible: checked.visible, required: checked.required, readonly: checked.readonly, errors, data };
    }
    data = Object.fromEntries(Object.entries(data).filter(([name]) => !left.has(name)));
  }
}

function reviewSchema(form: Form, asked: Asked): Review {
  const data = form.kind === "arguments" ? argumentData(form, asked) : form.kind === "data" ? wholeData(form, asked) : null;
  const problems = data === null && form.kind !== "data" ? [] : problemsIn(data, form.schema);
  const errors: Record<string, string> = {};
  for (const problem of problems) {
    const [path = "", ...rest] = problem.split(": ");
    const named = path.replace(/^data\.?/, "");
    const place = form.kind === "arguments" ? named.replace(/^arguments\.?/, "") : named;
    const field = isWhole(form) ? DATA : fieldAt(form, place);
    const inner = isWhole(form) ? path.replace(/^data/, "") : place === field ? "" : place.slice(field.length);
    const text = [inner, rest.join(": ")].filter(Boolean).join(" ");
    errors[field] = Object.hasOwn(errors, field) ? `${errors[field]}; ${text}` : text;
  }
  const all = new Set(form.sections.map((each) => each.field));
  const required = new Set(form.sections.filter((each) => each.raw["required"] === true).map((each) => each.field));
  return { visible: all, required, readonly: new Set(), errors, data };
}

/** The field that shows this part of the answer: the longest that it begins with. */
export function fieldAt(form: Form, place: string): string {
  const names = form.sections.map((each) => each.field).filter((name) => place === name || place.startsWith(`${name}.`) || place.startsWith(`${name}[`));
  return names.toSorted((left, right) => right.length - left.length)[0] ?? "";
}

function wholeData(form: Form, { values }: Asked): Record<string, unknown> | null {
  if (!isWhole(form)) {
    const given = inputFrom(form.input, values, {});
    // Nothing was given: where that is an answer, it is none.
    return Object.keys(given).length === 0 && problemsIn(null, form.schema).length === 0 ? null : given;
  }
  const found = valueOf(form.sections[0]!, values[DATA]);
  return isMapping(found) ? found : found === null ? null : { [DATA]: found };
}

/** For a tool, what differs from its call. A call that is not approved needs nothing. */
function argumentData(form: Form, { values, decision }: Asked): Record<string, unknown> | null {
  if (decision !== null && decision !== APPROVE) return null;
  const instructions = instructionsIn(form, values);
  const data = {
    ...(editedFields(form, values).length > 0 ? { arguments: inputFrom(form.input, values, besideFields(form.input, form.given)) } : {}),
    ...(instructions ? { modifications: { instructions } } : {}),
  };
  return Object.keys(data).length > 0 ? data : null;
}

/** The message to the agent. With a call that is not approved, the comment takes it there. */
export function instructionsIn(form: Form, values: Values): string {
  return form.kind === "arguments" ? textOf(values[INSTRUCTIONS]).trim() : "";
}

export function commentFor(form: Form, { values, decision }: Asked, comment: string): string {
  const added = form.kind === "arguments" && decision !== APPROVE ? instructionsIn(form, values) : "";
  return [comment.trim(), added].filter(Boolean).join("\n");
}

/** Fields whose value is not what was proposed. */
export function editedFields(form: Form, values: Values): string[] {
  const inputs = form.sections.filter((each) => each.type !== "context" && each.field !== INSTRUCTIONS);
  return inputs.filter((each) => (each.hasProposal ? isEdited(each, values[each.field]) : !isEmpty(valueOf(each, values[each.field])))).map((each) => each.field);
}

export function answerData(form: Form, asked: Asked): Record<string, unknown> | null {
  return reviewOf(form, asked).data;
}

function at(value: unknown, name: string): unknown {
  return isMapping(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
