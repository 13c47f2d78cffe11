/** Lengths of time in a search, as the server reads them: `90`, `250ms`, `1h30m`, `7d`, `PT15M`. In microseconds. */

export class QueryError extends Error {
  constructor(readonly reason: string, readonly known: readonly string[] = []) {
    super(reason);
  }
}

const SIZES: Record<string, bigint> = { w: 604_800_000_000n, d: 86_400_000_000n, h: 3_600_000_000n, m: 60_000_000n, s: 1_000_000n, ms: 1_000n };
const LONGEST = 365_000n * 86_400_000_000n;
const MOST_LETTERS = 100;
const PART = /([0-9]+(?:\.[0-9]+)?)\s*(ms|[wdhms])(?![a-zA-Z])\s*/uy;
const ISO = /^P(?=.)(?:([0-9]+(?:[.,][0-9]+)?)W)?(?:([0-9]+(?:[.,][0-9]+)?)D)?(?:T(?=.)(?:([0-9]+(?:[.,][0-9]+)?)H)?(?:([0-9]+(?:[.,][0-9]+)?)M)?(?:([0-9]+(?:[.,][0-9]+)?)S)?)?$/u;
type Part = { number: string; unit: string };

export function lengthIn(text: string): bigint {
  if ([...text].length > MOST_LETTERS) throw new QueryError("length");
  const total = totalOf(partsOf(text.trim()));
  if (total === 0n || total > LONGEST) throw new QueryError("length");
  return total;
}

function partsOf(body: string): Part[] {
  if (/^[0-9]+(?:\.[0-9]+)?$/.test(body)) return [{ number: body, unit: "s" }];
  if (body.startsWith("P")) return isoParts(body);
  const parts: Part[] = [];
  PART.lastIndex = 0;
  let end = 0;
  for (let found = PART.exec(body); found !== null; found = PART.exec(body)) {
    parts.push({ number: found[1]!, unit: found[2]! });
    end = PART.lastIndex;
  }
  if (end < body.length || parts.length === 0) throw new QueryError("length");
  return parts;
}

function isoParts(body: string): Part[] {
  const found = ISO.exec(body);
  if (found === null) throw new QueryError("length");
  return ["w", "d", "h", "m", "s"].flatMap((unit, place) => {
    const number = found[place + 1];
    return number === undefined ? [] : [{ number: number.replace(",", "."), unit }];
  });
}

/** Units go from large to small, each once; only the last number may have a fraction. */
function totalOf(parts: readonly Part[]): bigint {
  const sizes = parts.map(({ unit }) => SIZES[unit]!);
  if (sizes.some((size, place) => place > 0 && sizes[place - 1]! <= size)) throw new QueryError("length");
  if (parts.slice(0, -1).some(({ number }) => number.includes("."))) throw new QueryError("length");
  return parts.reduce((sum, { number }, place) => sum + product(number, sizes[place]!), 0n);
}

/** Exact, then rounded to the nearest even microsecond. */
function product(number: string, size: bigint): bigint {
  const [whole = "0", fraction = ""] = number.split(".");
  const scale = 10n ** BigInt(fraction.length);
  const value = BigInt(whole + fraction) * size;
  const floor = value / scale;
  const twice = (value % scale) * 2n;
  return twice > scale || (twice === scale && floor % 2n === 1n) ? floor + 1n : floor;
}
