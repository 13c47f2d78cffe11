/** What is wrong with a value by its JSON Schema, in the words of the server: `data.items[2].price: ...`. */
import { isMapping, isNumeric } from "./conditionValues";
import { words } from "./formError";
import { isMatch } from "./pattern";
import { firstOf, lengthOf, numberText, quoted } from "./pythonText";
import { compareRatios, isMultiple, ratioOf } from "./ratio";

type Schema = Readonly<Record<string, unknown>>;
type Found = { at: string; text: string };
type Check = (value: unknown, wanted: unknown, at: string, schema: Schema) => Found[];
const MATCHED = 1_000;

export function problemsIn(value: unknown, schema: unknown, at = "data"): string[] {
  return found(value, schema, at).map((each) => `${each.at}: ${each.text}`);
}

function found(value: unknown, schema: unknown, at: string): Found[] {
  if (schema === false) return [{ at, text: words("nothing") }];
  if (!isMapping(schema)) return [];
  return Object.entries(CHECKS).flatMap(([keyword, check]) => (Object.hasOwn(schema, keyword) ? check(value, schema[keyword], at, schema) : []));
}

function one(isRight: boolean, at: string, text: () => string): Found[] {
  return isRight ? [] : [{ at, text: text() }];
}

const TYPES: Record<string, (value: unknown) => boolean> = {
  null: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  integer: (value) => typeof value === "bigint" || Number.isInteger(value),
  number: isNumeric,
  string: (value) => typeof value === "string",
  array: Array.isArray,
  object: isMapping,
};

const type: Check = (value, wanted, at) => {
  const names = (Array.isArray(wanted) ? wanted : [wanted]).map(String);
  const types = names.map((name) => (name === "null" ? name : `${"aio".includes(name[0]!) ? "an" : "a"} ${name}`)).join(" or ");
  return one(names.some((name) => TYPES[name]?.(value)), at, () => words("wrongType", { value: short(value), types }));
};

const properties: Check = (value, wanted, at) =>
  !isMapping(value) ? [] : Object.entries(wanted as Schema).flatMap(([name, schema]) =>
    Object.hasOwn(value, name) ? found(value[name], schema, `${at}.${name}`) : []);

const required: Check = (value, wanted, at) =>
  !isMapping(value) ? [] : (wanted as string[]).filter((name) => !Object.hasOwn(value, name)).map((name) => ({ at: `${at}.${name}`, text: words("missing") }));

const additionalProperties: Check = (value, wanted, at, schema) => {
  if (!isMapping(value)) return [];
  const known = isMapping(schema["properties"]) ? schema["properties"] : {};
  return Object.keys(value).filter((name) => !Object.hasOwn(known, name)).flatMap((name) =>
    wanted === false ? [{ at: `${at}.${name}`, text: words("noField") }] : found(value[name], wanted, `${at}.${name}`));
};

const items: Check = (value, wanted, at, schema) => {
  const first = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"].length : 0;
  return !Array.isArray(value) ? [] : value.slice(first).flatMap((item, place) => found(item, wanted, `${at}[${place + first}]`));
};

const prefixItems: Check = (value, wanted, at) =>
  !Array.isArray(value) ? [] : (wanted as unknown[]).slice(0, value.length).flatMap((schema, place) => found(value[place], schema, `${at}[${place}]`));

const uniqueItems: Check = (value, wanted, at) =>
  !wanted || !Array.isArray(value) ? [] : value.flatMap((item: unknown, place) => {
    const first = value.findIndex((each) => isSameJson(each, item));
    return first === place ? [] : [{ at: `${at}[${place}]`, text: words("duplicate", { value: short(item), first: String(first) }) }];
  });

function size(what: string, isFewer: boolean, countOf: (value: unknown) => number | null): Check {
  return (value, wanted, at) => {
    const count = countOf(value);
    const isRight = count === null || (isFewer ? count >= Number(wanted) : count <= Number(wanted));
    return one(isRight, at, () => words(isFewer ? "fewer" : "more", { count: String(count), what, limit: String(wanted) }));
  };
}

const entries = (value: unknown) => (isMapping(value) ? Object.keys(value).length : null);
const members = (value: unknown) => (Array.isArray(value) ? value.length : null);
const letters = (value: unknown) => (typeof value === "string" ? lengthOf(value) : null);

function bound(word: string, isRight: (difference: number) => boolean): Check {
  return (value, wanted, at) => {
    if (!isNumeric(value)) return [];
    return one(isRight(compareRatios(ratioOf(value)!, ratioOf(wanted)!)), at, () => words("bound", { value: short(value), word, limit: short(wanted) }));
  };
}

const multipleOf: Check = (value, wanted, at) =>
  !isNumeric(value) ? [] : one(isMultiple(ratioOf(value)!, ratioOf(wanted)!), at, () => words("multiple", { value: short(value), step: short(wanted) }));

const pattern: Check = (value, wanted, at) => {
  if (typeof value !== "string") return [];
  const count = lengthOf(value);
  if (count > MATCHED) return [{ at, text: words("longPattern", { count: String(count), most: String(MATCHED) }) }];
  return one(isMatch(String(wanted), value) !== false, at, () => words("noMatch", { value: short(value), pattern: String(wanted) }));
};

function noForm(value: unknown, wanted: unknown[], at: string): string {
  const tried = wanted.map((schema) => problemsIn(value, schema, at).join(", ")).join("; or ");
  return words("noForm", { value: short(value), count: String(wanted.length), tried });
}

function fitting(value: unknown, wanted: unknown): number {
  return (wanted as unknown[]).filter((schema) => found(value, schema, "").length === 0).length;
}

const anyOf: Check = (value, wanted, at) => one(fitting(value, wanted) > 0, at, () => noForm(value, wanted as unknown[], at));

const oneOf: Check = (value, wanted, at) => {
  const count = fitting(value, wanted);
  return one(count === 1, at, () => (count === 0 ? noForm(value, wanted as unknown[], at) : words("manyForms", { value: short(value), count: String(count) })));
};

/** 1 equals 1.0, and not true. */
function isSameJson(left: unknown, right: unknown): boolean {
  if (isNumeric(left) && isNumeric(right)) return compareRatios(ratioOf(left)!, ratioOf(right)!) === 0;
  if (Array.isArray(left) && Array.isArray(right)) return left.length === right.length && left.every((each, place) => isSameJson(each, right[place]));
  if (isMapping(left) && isMapping(right)) {
    const names = Object.keys(left);
    return names.length === Object.keys(right).length && names.every((name) => Object.hasOwn(right, name) && isSameJson(left[name], right[name]));
  }
  return left === right;
}

function short(value: unknown): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return "a list";
  if (isMapping(value)) return "an object";
  const text = isNumeric(value) ? numberText(value) : quoted(String(value));
  return lengthOf(text) <= 60 ? text : `${firstOf(text, 59)}…`;
}

/** In the order in which the server looks. */
const CHECKS: Record<string, Check> = {
  type,
  enum: (value, wanted, at) => one((wanted as unknown[]).some((each) => isSameJson(each, value)), at,
    () => words("noValue", { value: short(value), values: (wanted as unknown[]).map(short).join(", ") })),
  const: (value, wanted, at) => one(isSameJson(wanted, value), at, () => words("noConst", { value: short(value), expected: short(wanted) })),
  properties, required, additionalProperties,
  minProperties: size("entries", true, entries),
  maxProperties: size("entries", false, entries),
  items, prefixItems,
  minItems: size("items", true, members),
  maxItems: size("items", false, members),
  uniqueItems,
  minimum: bound("at least", (difference) => difference >= 0),
  maximum: bound("at most", (difference) => difference <= 0),
  exclusiveMinimum: bound("above", (difference) => difference > 0),
  exclusiveMaximum: bound("below", (difference) => difference < 0),
  multipleOf,
  minLength: size("characters", true, letters),
  maxLength: size("characters", false, letters),
  pattern, anyOf, oneOf,
  allOf: (value, wanted, at) => (wanted as unknown[]).flatMap((schema) => found(value, schema, at)),
  not: (value, wanted, at) => one(found(value, wanted, "").length > 0, at, () => words("excluded", { value: short(value) })),
};
