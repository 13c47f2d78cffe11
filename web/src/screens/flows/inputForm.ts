/** The input of a flow as fields: JSON Schema becomes fields where it can, and a JSON field otherwise. */
import { type Form, type Section, type Values, formOf, isEmpty, isRecord, labelOf, valueOf } from "@/models/form";

type Schema = Record<string, unknown>;
type Shape = "plain" | "choice" | "lines" | "json";
export type InputField = {
  field: string;
  path: string[];
  shape: Shape;
  section: Section;
  /** Of a list: its items. Of a choice: the values, by their texts. */
  choices: Map<string, unknown>;
  isNumbers: boolean;
  isNullable: boolean;
  isContainer: boolean;
  initial: unknown;
};
export type Fault = "missing" | "notJson" | "tooLarge";
type Words = { perLine: string };

const DEEPEST = 3;
const FORMATS: Record<string, string> = { date: "date", "date-time": "datetime", time: "time", email: "email", uri: "url" };
const SCALARS = new Set(["string", "integer", "number", "boolean"]);

/** Empty for a flow that takes any object: its input is written as JSON. */
export function inputFields(schema: unknown, words: Words): InputField[] {
  return isRecord(schema) ? fieldsIn(schema, schema, [], true, words) : [];
}

function fieldsIn(root: Schema, schema: Schema, around: string[], isNeeded: boolean, words: Words): InputField[] {
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const needed = Array.isArray(schema["required"]) ? schema["required"] : [];
  // What must be filled in comes first.
  const names = Object.keys(properties).toSorted((left, right) => Number(needed.includes(right)) - Number(needed.includes(left)));
  return names.flatMap((name) => {
    const { schema: found, isNullable } = plainSchema(root, properties[name]);
    const path = [...around, name];
    const isRequired = isNeeded && needed.includes(name);
    if (isRecord(found["properties"]) && path.length < DEEPEST && !isNullable) {
      return fieldsIn(root, found, path, isRequired, words);
    }
    return [fieldOf(root, found, path, { isRequired, isNullable, words })];
  });
}

/** Without a local reference and without the alternative `null`. */
function plainSchema(root: Schema, given: unknown, depth = 0): { schema: Schema; isNullable: boolean } {
  const schema = isRecord(given) ? given : {};
  const reference = schema["$ref"];
  if (typeof reference === "string" && depth < 8) {
    const { $ref: _, ...rest } = schema;
    const { schema: found, isNullable } = plainSchema(root, pointed(root, reference), depth + 1);
    return { schema: { ...found, ...rest }, isNullable };
  }
  const choices = Array.isArray(schema["anyOf"]) ? schema["anyOf"] : schema["oneOf"];
  if (Array.isArray(choices)) {
    const real = choices.filter((each) => !isRecord(each) || each["type"] !== "null");
    if (real.length === 1 && depth < 8) {
      const { anyOf: _, oneOf: __, ...rest } = schema;
      const { schema: found } = plainSchema(root, real[0], depth + 1);
      return { schema: { ...found, ...rest }, isNullable: real.length < choices.length };
    }
    return { schema, isNullable: real.length < choices.length };
  }
  const types = Array.isArray(schema["type"]) ? schema["type"].filter((each) => each !== "null") : [];
  if (types.length === 0) return { schema, isNullable: false };
  // A decimal number is a text or a number: a text keeps its digits.
  const type: unknown = types.includes("string") ? "string" : types.length === 1 ? types[0] : undefined;
  return { schema: { ...schema, type }, isNullable: (schema["type"] as unknown[]).includes("null") };
}

function pointed(root: Schema, reference: string): unknown {
  if (!reference.startsWith("#/")) return {};
  const steps = reference.slice(2).split("/").map((each) => each.replaceAll("~1", "/").replaceAll("~0", "~"));
  return steps.reduce<unknown>((found, step) => (isRecord(found) && Object.hasOwn(found, step) ? found[step] : {}), root);
}

type About = { isRequired: boolean; isNullable: boolean; words: Words };

function fieldOf(root: Schema, schema: Schema, path: string[], { isRequired, isNullable, words }: About): InputField {
  const options = enumOf(schema);
  const isList = schema["type"] === "array";
  const items = isList ? plainSchema(root, schema["items"]).schema : {};
  const shape = shapeOf(schema, items);
  const choices = new Map((options ?? enumOf(items) ?? []).map((each) => [textOf(each), each]));
  const help = [schema["description"], shape === "lines" ? words.perLine : ""].filter(Boolean).join(" ");
  const described = {
    type: "input",
    field: path.join("."),
    kind: kindOf(schema, items, shape),
    label: typeof schema["title"] === "string" && schema["title"] ? schema["title"] : path.map(labelOf).join(" › "),
    help,
    required: isRequired && !isNullable,
    options: [...choices.keys()],
    max_length: schema["maxLength"],
    columns: columnsOf(root, items),
  };
  return {
    field: described.field,
    path,
    shape,
    section: formOf({ "x-form": { sections: [described] } }, null).sections[0]!,
    choices,
    isNumbers: items["type"] === "integer" || items["type"] === "number",
    isNullable,
    isContainer: isList || schema["type"] === "object",
    initial: schema["default"],
  };
}

function enumOf(schema: Schema): unknown[] | null {
  if ("const" in schema) return [schema["const"]];
  return Array.isArray(schema["enum"]) ? schema["enum"].filter((each) => each !== null) : null;
}

function shapeOf(schema: Schema, items: Schema): Shape {
  if (enumOf(schema) !== null) return "choice";
  if (schema["type"] === "array") {
    if (enumOf(items) !== null) return "choice";
    if (isTable(items)) return "plain";
    return SCALARS.has(String(items["type"])) && items["type"] !== "boolean" ? "lines" : "json";
  }
  return SCALARS.has(String(schema["type"])) ? "plain" : "json";
}

function kindOf(schema: Schema, items: Schema, shape: Shape): string {
  if (shape === "choice") return schema["type"] === "array" ? "multiselect" : "select";
  if (shape === "lines") return "textarea";
  if (shape === "json") return "json";
  if (isTable(items)) return "table";
  const type = String(schema["type"]);
  if (type !== "string") return type;
  if (Number(schema["maxLength"]) > 200) return "textarea";
  return FORMATS[String(schema["format"])] ?? "text";
}

function isTable(items: Schema): boolean {
  const cells = isRecord(items["properties"]) ? Object.values(items["properties"]) : [];
  return cells.length > 0 && cells.length <= 8 && cells.every((each) => isRecord(each) && SCALARS.has(String(each["type"])));
}

function columnsOf(root: Schema, items: Schema): Record<string, unknown>[] {
  if (!isTable(items)) return [];
  return Object.entries(items["properties"] as Schema).map(([name, each]) => {
    const { schema } = plainSchema(root, each);
    return { field: name, kind: kindOf(schema, {}, shapeOf(schema, {})) };
  });
}

export function formOfFields(fields: readonly InputField[]): Form {
  return { kind: "form", sections: fields.map((each) => each.section) };
}

// ---- values

/** What the controls show for a value. Without one, what the schema gives. */
export function valuesFrom(fields: readonly InputField[], value: Schema | null): Record<string, unknown> {
  return Object.fromEntries(fields.map((each) => [each.field, shownIn(each, value === null ? each.initial : at(value, each.path))]));
}

function shownIn(field: InputField, value: unknown): unknown {
  if (value === undefined || value === null) return undefined;
  if (field.shape === "choice") return Array.isArray(value) ? value.map(textOf) : textOf(value);
  if (field.shape === "lines") return Array.isArray(value) ? value.map(String).join("\n") : textOf(value);
  if (field.shape === "json") return typeof value === "string" ? JSON.stringify(value) : JSON.stringify(value, null, 2);
  return value;
}

/** What no field shows, and must not be lost. */
export function besideFields(fields: readonly InputField[], value: Schema): Schema {
  return fields.reduce((rest, each) => without(rest, each.path), value);
}

/** The input of the run: the fields, and what is beside them. */
export function inputFrom(fields: readonly InputField[], values: Values, beside: Schema): Schema {
  return fields.reduce((whole, each) => {
    const found = valueIn(each, values[each.field]);
    return found === undefined ? whole : put(whole, each.path, found);
  }, beside);
}

/** undefined: not given, the flow's own default counts. */
function valueIn(field: InputField, shown: unknown): unknown {
  const found = read(field, shown);
  if (!isEmpty(found)) return found;
  if (isEmpty(field.initial)) return undefined;
  if (field.isNullable) return null;
  return typeof field.initial === "string" ? "" : Array.isArray(field.initial) ? [] : undefined;
}

function read(field: InputField, shown: unknown): unknown {
  if (field.shape === "choice") {
    const one = (each: unknown): unknown => (field.choices.has(String(each)) ? field.choices.get(String(each)) : each);
    return Array.isArray(shown) ? shown.map(one) : shown === undefined ? null : one(shown);
  }
  if (field.shape !== "lines") return valueOf(field.section, shown);
  const lines = String(shown ?? "").split("\n").map((each) => each.trim()).filter(Boolean);
  return field.isNumbers ? lines.map((each) => (Number.isNaN(Number(each)) ? each : Number(each))) : lines;
}

/** What can be told before the server is asked. */
export function faultsIn(fields: readonly InputField[], values: Values): Record<string, Fault> {
  const found: Record<string, Fault> = {};
  for (const field of fields) {
    const value = read(field, values[field.field]);
    if (field.section.required && isEmpty(value)) found[field.field] = "missing";
    else if (field.shape === "json" && field.isContainer && typeof value === "string") found[field.field] = "notJson";
    else if (hasLostDigits(value)) found[field.field] = "tooLarge";
  }
  return found;
}

function hasLostDigits(value: unknown): boolean {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value);
  if (Array.isArray(value)) return value.some(hasLostDigits);
  return isRecord(value) && Object.values(value).some(hasLostDigits);
}

/** The JSON view, read. */
export function inputFromText(text: string): { value: Schema; fault: null } | { value: null; fault: "notObject" | "tooLarge" } {
  let found: unknown;
  try {
    found = text.trim() === "" ? {} : (JSON.parse(text) as unknown);
  } catch {
    return { value: null, fault: "notObject" };
  }
  if (!isRecord(found)) return { value: null, fault: "notObject" };
  return hasLostDigits(found) ? { value: null, fault: "tooLarge" } : { value: found, fault: null };
}

// ---- small

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((found, step) => (isRecord(found) && Object.hasOwn(found, step) ? found[step] : undefined), value);
}

function put(whole: Schema, [head = "", ...rest]: readonly string[], value: unknown): Schema {
  if (rest.length === 0) return { ...whole, [head]: value };
  const inner = Object.hasOwn(whole, head) ? whole[head] : {};
  return { ...whole, [head]: put(isRecord(inner) ? inner : {}, rest, value) };
}

function without(whole: Schema, [head = "", ...rest]: readonly string[]): Schema {
  if (!Object.hasOwn(whole, head)) return whole;
  const { [head]: inner, ...others } = whole;
  if (rest.length === 0) return others;
  const left = isRecord(inner) ? without(inner, rest) : {};
  return Object.keys(left).length > 0 ? { ...others, [head]: left } : others;
}
