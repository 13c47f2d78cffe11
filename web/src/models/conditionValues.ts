/** What equal, ordered, contained and true mean in a condition. */
import { compareTexts } from "./pythonText";
import { compareRatios, ratioOf } from "./ratio";
import { isRecord as isMapping } from "./values";

export { isMapping };

export type Path = readonly string[];
export type Resolve = (path: Path) => unknown;

/** What a path gives that leads nowhere. */
export const MISSING = Symbol("missing");

export function resolverOf(values: Readonly<Record<string, unknown>>): Resolve {
  return (path) => path.reduce<unknown>(step, values);
}

function step(value: unknown, part: string): unknown {
  if (Array.isArray(value)) return /^\d{1,18}$/.test(part) && Number(part) < value.length ? value[Number(part)] : MISSING;
  return isMapping(value) && Object.hasOwn(value, part) ? value[part] : MISSING;
}

export function isNumeric(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

export function isTrue(value: unknown): boolean {
  if (value === MISSING || value === undefined || value === null) return false;
  if (Array.isArray(value)) return value.length > 0;
  if (isMapping(value)) return Object.keys(value).length > 0;
  return Boolean(value);
}

/** A missing value equals null. A boolean never equals a number. */
export function isEqual(left: unknown, right: unknown): boolean {
  const [one, other] = [left, right].map((each) => (each === MISSING || each === undefined ? null : each));
  if (isNumeric(one) && isNumeric(other)) return compareRatios(ratioOf(one)!, ratioOf(other)!) === 0;
  if (Array.isArray(one) && Array.isArray(other)) return one.length === other.length && one.every((each, place) => isEqual(each, other[place]));
  if (isMapping(one) && isMapping(other)) {
    const names = Object.keys(one);
    return names.length === Object.keys(other).length && names.every((name) => Object.hasOwn(other, name) && isEqual(one[name], other[name]));
  }
  return one === other;
}

export function isOrdered(operator: string, left: unknown, right: unknown): boolean {
  const difference = isNumeric(left) && isNumeric(right) ? compareRatios(ratioOf(left)!, ratioOf(right)!)
    : typeof left === "string" && typeof right === "string" ? compareTexts(left, right) : null;
  if (difference === null) return false;
  if (operator === "<") return difference < 0;
  if (operator === "<=") return difference <= 0;
  return operator === ">" ? difference > 0 : difference >= 0;
}

export function contains(container: unknown, item: unknown): boolean {
  if (typeof container === "string") return typeof item === "string" && container.includes(item);
  const members = Array.isArray(container) ? container : isMapping(container) ? Object.keys(container) : [];
  return members.some((each) => isEqual(item, each));
}
