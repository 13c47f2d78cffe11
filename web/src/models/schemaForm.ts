/** JSON Schema becomes fields where it can, and a JSON field otherwise: the input of a flow, the arguments of a tool. */
import { form as messages } from "@/locales/en/form";
import { textOf as textsOf } from "@/locales/text";
import { isMapping as isRecord } from "./conditionValues";
import { readJson, writeJson } from "./json";
import { words } from "./formError";
import { problemsIn } from "./formSchema";
import { type Section, sectionOf } from "./formSection";
import { typingFault, valueOf } from "./formTyped";
import { isEmpty } from "./formValue";
import { labelOf } from "./values";

const t = textsOf(messages);

type Schema = Record<string, unknown>;
type Values = Readonly<Record<string, unknown>>;
/** `lines`: a list, with a row for each item. */
type Shape = "plain" | "choice" | "lines" | "json";
export type InputField = {
  field: string;
  path: string[];
  shape: Shape;
  section: Section;
  /** Of a list: its items. Of a choice: the values, by their texts. */
  choices: Map<string, unknown>;
  isNullable: boolean;
  initial: unknown;
  schema: Schema;
};

const DEEPEST = 3;
/** The one column of a list. */
const ITEM = "item";
/** More would not be in view in a field of one line. */
const LONG_LINE = 35;
const LONG_TEXT = 200;
const FORMATS: Record<string, string> = { date: "date", "date-time": "datetime", time: "time", email: "email", uri: "url" };
const SCALARS = new Set(["string", "integer", "number", "boolean"]);

/** Empty for a flow that takes any object: its input is written as JSON. A value that its field cannot show makes it a
 * JSON field. */
export function inputFields(schema: unknown, value: Schema | null = null): InputField[] {
  return isRecord(schema) ? fieldsIn(schema, schema, [], true, value) : [];
}

function fieldsIn(root: Schema, schema: Schema, around: string[], isNeeded: boolean, value: Schema | null): InputField[] {
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const needed = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.keys(properties).flatMap((name) => {
    const { schema: found, isNullable } = plainSchema(root, properties[name]);
    const path = [...around, name];
    const isRequired = isNeeded && needed.includes(name);
    const given = value === null ? undefined : at(value, path);
    const isInner = given === undefined || isRecord(given);
    if (isRecord(found["properties"]) && path.length < DEEPEST && !isNullable && isInner) {
      return fieldsIn(root, found, path, isRequired, value);
    }
    const about = { isRequired, isNullable, isText: typeof given === "string" && isLong(given) };
    const field = fieldOf(root, found, path, about);
    return [given === undefined || isShown(field, given) ? field : fieldOf(root, found, path, { ...about, isJson: true })];
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

type About = { isRequired: boolean; isNullable: boolean; isText: boolean; isJson?: boolean };

function fieldOf(root: Schema, schema: Schema, path: string[], { isRequired, isNullable, isText, isJson = false }: About): InputField {
  const options = enumOf(schema);
  const isList = schema["type"] === "array";
  const items = isList ? plainSchema(root, schema["items"]).schema : {};
  const shape = isJson ? "json" : shapeOf(schema, items, root);
  const choices = new Map((options ?? enumOf(items) ?? []).map((each) => [textOf(each), each]));
  const help = [schema["description"], shape === "json" && isList ? t("listAsJson") : ""].filter(Boolean).join(" ");
  const described = {
    type: "input",
    field: path.join("."),
    kind: isText && kindOf(schema, items, shape, root) === "text" ? "textarea" : kindOf(schema, items, shape, root),
    label: typeof schema["title"] === "string" && schema["title"] ? schema["title"] : path.map(labelOf).join(" › "),
    help,
    required: isRequired && !isNullable,
    ...(shape === "choice" ? { options: [...choices.keys()] } : {}),
    ...(typeof schema["maxLength"] === "number" && shape !== "lines" ? { max_length: schema["maxLength"] } : {}),
    ...(shape === "plain" && isTable(root, items) ? { columns: columnsOf(root, items) } : {}),
    ...(shape === "lines" ? { columns: [{ type: "input", field: ITEM, kind: isFree(items) ? "json" : kindOf(items, {}, "plain", root), label: t("item") }] } : {}),
  };
  return {
    field: described.field,
    path,
    shape,
    section: sectionOf(described),
    choices,
    isNullable,
    initial: schema["default"],
    schema,
  };
}

function enumOf(schema: Schema): unknown[] | null {
  if ("const" in schema) return [schema["const"]];
  return Array.isArray(schema["enum"]) ? schema["enum"].filter((each) => each !== null) : null;
}

function shapeOf(schema: Schema, items: Schema, root: Schema): Shape {
  if (enumOf(schema) !== null) return "choice";
  if (schema["type"] === "array") {
    if (enumOf(items) !== null) return "choice";
    if (isTable(root, items)) return "plain";
    return isFree(items) || (SCALARS.has(String(items["type"])) && items["type"] !== "boolean") ? "lines" : "json";
  }
  return SCALARS.has(String(schema["type"])) ? "plain" : "json";
}

function kindOf(schema: Schema, items: Schema, shape: Shape, root: Schema): string {
  if (shape === "choice") return schema["type"] === "array" ? "multiselect" : "select";
  if (shape === "lines") return "table";
  if (shape === "json") return "json";
  if (isTable(root, items)) return "table";
  const type = String(schema["type"]);
  if (type !== "string") return type;
  if (Number(schema["maxLength"]) > LONG_TEXT) return "textarea";
  return FORMATS[String(schema["format"])] ?? "text";
}

/** Objects of any form: each is written as JSON. */
function isFree(items: Schema): boolean {
  return items["type"] === "object" && !isRecord(items["properties"]);
}

function isTable(root: Schema, items: Schema): boolean {
  const cells = isRecord(items["properties"]) ? Object.values(items["properties"]) : [];
  return cells.length > 0 && cells.length <= 8 && cells.every((each) => isCell(plainSchema(root, each).schema));
}

/** A choice in a cell is one of texts. */
function isCell(schema: Schema): boolean {
  const options = enumOf(schema);
  return options === null ? SCALARS.has(String(schema["type"])) : options.every((each) => typeof each === "string");
}

function columnsOf(root: Schema, items: Schema): Record<string, unknown>[] {
  const needed = Array.isArray(items["required"]) ? items["required"] : [];
  return Object.entries(items["properties"] as Schema).map(([name, each]) => {
    const { schema, isNullable } = plainSchema(root, each);
    const options = enumOf(schema);
    return {
      type: "input",
      field: name,
      kind: kindOf(schema, {}, shapeOf(schema, {}, root), root),
      ...(typeof schema["title"] === "string" ? { label: schema["title"] } : {}),
      ...(options === null ? {} : { options }),
      required: needed.includes(name) && !isNullable,
    };
  });
}

function isLong(text: string): boolean {
  return text.includes("\n") || text.length > LONG_LINE;
}

/** Whether the field can show this value, and give it back as it is. */
function isShown(field: InputField, value: unknown): boolean {
  if (value === null) return true;
  // A cell has one line.
  if (field.shape === "lines" && Array.isArray(value) && value.some((each) => typeof each === "string" && each.includes("\n"))) return false;
  return writeJson(read(field, shownIn(field, value))) === writeJson(value);
}

// ---- values

/** What the controls show for a value. Without one, what the schema gives. */
export function valuesFrom(fields: readonly InputField[], value: Schema | null): Record<string, unknown> {
  return Object.fromEntries(fields.map((each) => [each.field, shownIn(each, value === null ? each.initial : at(value, each.path))]));
}

function shownIn(field: InputField, value: unknown): unknown {
  if (value === undefined || value === null) return undefined;
  if (field.shape === "choice") return Array.isArray(value) ? value.map(textOf) : textOf(value);
  if (field.shape === "lines") return (Array.isArray(value) ? value : [value]).map((each) => ({ [ITEM]: isRecord(each) ? writeJson(each) : each }));
  if (field.shape === "json") return writeJson(value, 2);
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

/** A value with its fields edited. What was empty stays as it was; what was emptied and has no empty form is null. */
export function editedWith(fields: readonly InputField[], values: Values, whole: Schema): Schema {
  return fields.reduce((found, each) => {
    const next = valueIn(each, values[each.field]);
    if (next !== undefined) return put(found, each.path, next);
    return isEmpty(at(whole, each.path)) ? found : put(found, each.path, null);
  }, whole);
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
  const found = valueOf(field.section, shown);
  return field.shape === "lines" && Array.isArray(found) ? found.map((row: Schema) => row[ITEM]) : found;
}

/** What can be told before the server is asked, by field. */
export function faultsIn(fields: readonly InputField[], values: Values): Record<string, string> {
  const found: Record<string, string> = {};
  for (const field of fields) {
    const shown = values[field.field];
    const value = valueIn(field, shown);
    const fault = typingFault(field.section, shown) || (value === undefined ? missing(field) : misfit(field, value));
    if (fault) found[field.field] = fault;
  }
  return found;
}

/** Of those that were changed: what was there already is not the editor's fault. */
export function faultsOf(fields: readonly InputField[], values: Values, before: Values): Record<string, string> {
  return faultsIn(fields.filter((each) => writeJson(values[each.field] ?? null) !== writeJson(before[each.field] ?? null)), values);
}

/** How the fields stand, as `reviewOf` says it of a form. */
export function reviewInput(fields: readonly InputField[], values: Values): { visible: Set<string>; required: Set<string>; readonly: Set<string>; errors: Record<string, string> } {
  const required = fields.filter((each) => each.section.raw["required"] === true);
  return {
    visible: new Set(fields.map((each) => each.field)),
    required: new Set(required.map((each) => each.field)),
    readonly: new Set(),
    errors: faultsIn(fields, values),
  };
}

function missing(field: InputField): string {
  return field.section.raw["required"] === true ? words("missing") : "";
}

function misfit(field: InputField, value: unknown): string {
  if (value === null && field.isNullable) return "";
  return problemsIn(value, field.schema, "").map((each) => each.replace(/^: /, "")).join("; ");
}

/** The JSON view, read; null: it is not an object. */
export function inputFromText(text: string): Schema | null {
  try {
    const found = text.trim() === "" ? {} : readJson(text);
    return isRecord(found) ? found : null;
  } catch {
    return null;
  }
}

// ---- small

function textOf(value: unknown): string {
  return typeof value === "string" ? value : writeJson(value);
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
