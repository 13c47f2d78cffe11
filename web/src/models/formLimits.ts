/** The limits of a field: `min`, `max` and `step`, compared exactly. */
import { isMapping, isNumeric } from "./conditionValues";
import { durationOf } from "./formDuration";
import { refuse } from "./formError";
import { orderOf } from "./formTime";
import { numberText } from "./pythonText";
import { compareRatios, isMultiple, ratioOf } from "./ratio";

type Compare = (limit: unknown) => number | null;

/** If a limit itself cannot be read, every value is refused. */
export function limitsOf(kind: string, field: Readonly<Record<string, unknown>>, value: unknown): void {
  const compare = comparison(kind, value);
  if (compare === null) return;
  const low = field["min"] ?? null;
  const high = field["max"] ?? null;
  const [below, above] = [low === null ? 0 : compare(low), high === null ? 0 : compare(high)];
  if (below === null || above === null) return refuse("limit", "limit");
  if (below < 0) return refuse("min", "below", { limit: limitText(low) });
  if (above > 0) return refuse("max", "above", { limit: limitText(high) });
  const [step, own] = [field["step"] ?? null, numeric(kind, value)];
  if (step !== null && own !== null && !isMultiple(own, ratioOf(step)!)) refuse("step", "step", { step: limitText(step) });
}

function limitText(limit: unknown): string {
  return isNumeric(limit) ? numberText(limit) : String(limit);
}

function numeric(kind: string, value: unknown) {
  return ["number", "integer", "percent", "currency"].includes(kind) ? ratioOf(isMapping(value) ? value["amount"] : value) : null;
}

/** How the value compares with a limit; null: its kind has no limits. */
function comparison(kind: string, value: unknown): Compare | null {
  const own = numeric(kind, value);
  if (own !== null) {
    return (limit) => {
      const other = ratioOf(limit);
      return other === null ? null : compareRatios(own, other);
    };
  }
  if (kind === "duration") return (limit) => order(durationOf(value), lengthIn(limit));
  if (kind !== "date" && kind !== "time" && kind !== "datetime") return null;
  const at = orderOf(kind, value);
  return (limit) => {
    const other = orderOf(kind, limit);
    return at === null || other === null || at.zoned !== other.zoned ? null : order(at.at, other.at);
  };
}

function lengthIn(limit: unknown): bigint | null {
  try {
    return durationOf(limit);
  } catch {
    return null;
  }
}

function order(own: bigint, limit: bigint | null): number | null {
  return limit === null ? null : own < limit ? -1 : own > limit ? 1 : 0;
}
