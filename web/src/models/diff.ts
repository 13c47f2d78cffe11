/** What a comparison is between, as the address has it, and how its texts are shown by line. */

export type Target = { run: string; record: number | undefined };
export type LineKind = "added" | "removed" | "same" | "place";

/** `12`: a record of this run. `RUN` and `RUN@12`: another run, at its latest record or another. */
export function targetOf(to: number | string, run: string): Target {
  if (typeof to === "number") return { run, record: to };
  const [other = "", record = ""] = to.split("@", 2);
  return { run: other || run, record: /^\d{1,10}$/.test(record) ? Number(record) : undefined };
}

export function writeTarget(target: Target, run: string): number | string {
  if (target.record === undefined) return target.run;
  return target.run === run ? target.record : `${target.run}@${target.record}`;
}

export type Sides = { from: number | undefined; to: Target };

/** Both sides; undefined: the latest record. Without any in the address: from the first record to the latest, and of a
    fork from its latest record to that of its source. */
export function sidesOf(run: string, at: number | undefined, to: number | string | undefined, first: number | undefined, source = ""): Sides {
  if (to !== undefined) return { from: at, to: targetOf(to, run) };
  if (source !== "") return { from: at, to: { run: source, record: undefined } };
  return { from: at ?? first, to: { run, record: undefined } };
}

/** Of a line as `diff -u` writes it. */
export function lineKind(line: string): LineKind {
  if (line.startsWith("@@") || line.startsWith("…")) return "place";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same";
}

/** `+12`, `-3`, or nothing if it is the same. */
export function differenceText(before: number, after: number, digits = 0): string {
  const found = after - before;
  if (Math.abs(found) < 10 ** -digits / 2) return "";
  return `${found > 0 ? "+" : "−"}${Math.abs(found).toFixed(digits)}`;
}
