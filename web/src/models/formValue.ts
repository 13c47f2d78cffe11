/** Reads a field's value as its kind, as the server does, or says what is wrong with it. */
import { isMapping, isNumeric } from "./conditionValues";
import { durationOf } from "./formDuration";
import { FieldValueError, refuse, words } from "./formError";
import { readFile } from "./formFile";
import { limitsOf } from "./formLimits";
import { amountOf } from "./formMoney";
import { problemsIn } from "./formSchema";
import { readDate, readDatetime, readTime } from "./formTime";
import { isMatch } from "./pattern";
import { SPACE, firstOf, lengthOf, strip } from "./pythonText";
import { compareRatios, ratioOf } from "./ratio";

/** A field as its author wrote it. */
export type Field = Readonly<Record<string, unknown>>;

const LONGEST = 64 * 1024;
const MATCHED = 1_000;
const ROWS = 1_000;
const EMAIL = new RegExp(`^[^${SPACE}@<>,;:"()[\\]\\\\]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`, "u");
const USER = new RegExp(`^[^${SPACE}]{1,200}$`, "u");
const PHONE = /^\+?[0-9][0-9 ()./-]{2,30}$/;
const SECRET = /^[A-Za-z0-9][A-Za-z0-9_./:-]{0,199}$/;

/** The value as it would be stored. Throws FieldValueError. */
export function readValue(field: Field, value: unknown): unknown {
  const kind = String(field["kind"] ?? "text");
  const found = (Object.hasOwn(READERS, kind) ? READERS[kind]! : text)(field, value);
  limitsOf(kind, field, found);
  return found;
}

function text(field: Field, value: unknown): string {
  const given = string(value);
  const low = Number(field["min_length"] ?? 0);
  const high = Math.min(Number(field["max_length"] ?? LONGEST), LONGEST);
  const count = lengthOf(given);
  if (count < low || count > high) return refuse("length", "length", { count: String(count), low: String(low), high: String(high) });
  const pattern = field["pattern"];
  if (typeof pattern === "string") {
    if (count > MATCHED) return refuse("length", "patternLength", { most: String(MATCHED) });
    if (isMatch(pattern, given) === false) return refuse("pattern", "pattern", { pattern });
  }
  return given;
}

function string(value: unknown): string {
  return typeof value === "string" ? value : refuse("type", "notText");
}

function matching(pattern: RegExp, key: Parameters<typeof words>[0]) {
  return (field: Field, value: unknown): string => {
    const found = strip(text(field, value));
    return pattern.test(found) ? found : refuse("format", key);
  };
}

function url(field: Field, value: unknown): string {
  const found = strip(text(field, value));
  return isWebAddress(found) ? found : refuse("format", "notUrl");
}

function isWebAddress(given: string): boolean {
  if (new RegExp(`[${SPACE}]`).test(given)) return false;
  // oxlint-disable-next-line no-control-regex -- the server leaves them out too
  const found = /^https?:\/\/([^/?#]*)/i.exec(given.replace(/^[\x00-\x20]+/, ""));
  if (!found) return false;
  const place = found[1]!;
  if (place.normalize("NFKC") !== place && /[/?#@:]/.test(place.normalize("NFKC").replaceAll(/[@:]/g, ""))) return false;
  const host = place.slice(place.lastIndexOf("@") + 1);
  if (/[[\]]/.test(host)) return /^\[[0-9a-fA-F:.]*:[0-9a-fA-F:.]*\](:.*)?$/.test(host);
  return host.split(":")[0] !== "";
}

function number(_field: Field, value: unknown): number | bigint {
  return isNumeric(value) ? value : refuse("type", "notNumber", hintFor(value));
}

/** Many people write 646,5, which is no number here; 1,840 could be two. */
function hintFor(value: unknown): { comma: string } {
  return { comma: typeof value === "string" && value.includes(",") ? "yes" : "no" };
}

function integer(field: Field, value: unknown): number | bigint {
  const found = number(field, value);
  if (typeof found === "number" && !Number.isInteger(found)) return refuse("type", "notWhole");
  return typeof found === "number" && !Number.isSafeInteger(found) ? BigInt(found) : found;
}

function percent(field: Field, value: unknown): number | bigint {
  if (typeof value !== "string") return number(field, value);
  const amount = amountOf(strip(strip(value).replace(/%$/, "")), String(field["locale"] ?? ""));
  if (amount === null) return refuse("type", "notPercent", hintFor(value));
  const whole = /^(-?\d+)(?:\.0*)?$/.exec(amount)?.[1];
  const found = Number(amount);
  return whole === undefined || Number.isSafeInteger(found) ? found : BigInt(whole);
}

function currency(field: Field, value: unknown): unknown {
  const code = field["currency"] ?? null;
  let [given, stated]: [unknown, unknown] = [value, null];
  if (isMapping(value)) {
    if (Object.keys(value).some((name) => name !== "amount" && name !== "currency")) return refuse("type", "moneyParts");
    [given, stated] = [value["amount"], value["currency"]];
    if (typeof stated !== "string" || !/^[A-Z]{3}$/.test(stated)) return refuse("format", "moneyCode");
  }
  const amount = amountOf(given, String(field["locale"] ?? ""));
  if (amount === null) return refuse("format", "notMoney", hintFor(given));
  if (code !== null && stated !== null && stated !== code) return refuse("currency", "otherCurrency", { stated: String(stated), code: String(code) });
  return stated === null || code !== null ? amount : { amount, currency: stated };
}

function boolean(_field: Field, value: unknown): boolean {
  return typeof value === "boolean" ? value : refuse("type", "notBoolean");
}

function choice(field: Field, value: unknown): string {
  const ids = Array.isArray(field["options"]) ? (field["options"] as { id: string }[]).map((each) => each.id) : [];
  return typeof value === "string" && ids.includes(value) ? value : refuse("option", "notOption", { options: ids.join(", ") });
}

function choices(field: Field, value: unknown): string[] {
  if (!Array.isArray(value)) return refuse("type", "notList");
  const found = value.map((each) => choice(field, each));
  return new Set(found).size === found.length ? found : refuse("option", "optionTwice");
}

function duration(_field: Field, value: unknown): unknown {
  durationOf(value);
  return value;
}

function json(field: Field, value: unknown): unknown {
  if (!("schema" in field)) return value;
  const problems = problemsIn(value, field["schema"]).slice(0, 5).map((each) => each.replace(/^data/, "").replace(/^: /, ""));
  if (problems.length > 0) throw new FieldValueError("schema", firstOf(problems.join("; "), 500));
  return value;
}

function table(field: Field, value: unknown): unknown[] {
  if (!Array.isArray(value)) return refuse("type", "notRows");
  if (value.length > ROWS) return refuse("length", "tooManyRows", { most: String(ROWS) });
  return value.map((row, place) => readRow(Array.isArray(field["columns"]) ? (field["columns"] as Field[]) : [], row, String(place)));
}

function readRow(columns: readonly Field[], row: unknown, place: string): Record<string, unknown> {
  if (!isMapping(row)) return refuse("type", "notRow", { row: place });
  const other = Object.keys(row).find((name) => columns.every((each) => each["field"] !== name));
  if (other !== undefined) return refuse("unknown", "noColumn", { row: place, column: firstOf(other, 60) });
  const found: Record<string, unknown> = {};
  for (const column of columns) {
    const name = String(column["field"]);
    const value = Object.hasOwn(row, name) ? row[name] : null;
    if (isEmpty(value)) {
      if (column["required"]) refuse("required", "noCell", { row: place, column: name });
      continue;
    }
    try {
      found[name] = readValue(column, value);
    } catch (error) {
      if (!(error instanceof FieldValueError)) throw error;
      throw new FieldValueError(error.code, words("cell", { row: place, column: name, message: error.message }));
    }
  }
  return found;
}

export function isEmpty(value: unknown): boolean {
  if (typeof value === "string") return strip(value) === "";
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}

/** Equal as the server compares stored values: 1 equals 1.0, and also true. */
export function isSameValue(left: unknown, right: unknown): boolean {
  const [one, other] = [left, right].map((each) => (typeof each === "boolean" ? Number(each) : (each ?? null)));
  if (isNumeric(one) && isNumeric(other)) return compareRatios(ratioOf(one)!, ratioOf(other)!) === 0;
  if (Array.isArray(one) && Array.isArray(other)) return one.length === other.length && one.every((each, place) => isSameValue(each, other[place]));
  if (isMapping(one) && isMapping(other)) {
    const names = Object.keys(one);
    return names.length === Object.keys(other).length && names.every((name) => Object.hasOwn(other, name) && isSameValue(one[name], other[name]));
  }
  return one === other;
}

const READERS: Record<string, (field: Field, value: unknown) => unknown> = {
  number, integer, percent, currency, boolean, duration, url, json, table,
  select: choice,
  radio: choice,
  multiselect: choices,
  date: (_, value) => readDate(string(value)),
  time: (_, value) => readTime(string(value)),
  datetime: (_, value) => readDatetime(string(value)),
  email: matching(EMAIL, "notEmail"),
  phone: matching(PHONE, "notPhone"),
  user: matching(USER, "notUser"),
  "secret-reference": matching(SECRET, "notSecret"),
  file: readFile,
};
