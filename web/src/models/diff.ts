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

/** `isReverse`: what this run changed is shown, from the other run to this one. */
export type Sides = { from: number | undefined; to: Target; isReverse: boolean };

/** Both sides; undefined: the latest record. Without any in the address: from the first record to the latest, and of a
    fork with the latest record of its source, from which it is compared. */
export function sidesOf(run: string, at: number | undefined, to: number | string | undefined, first: number | undefined, source = ""): Sides {
  const found = to === undefined ? { run: source || run, record: undefined } : targetOf(to, run);
  const isOwnHistory = to === undefined && source === "";
  return { from: isOwnHistory ? (at ?? first) : at, to: found, isReverse: source !== "" && found.run === source };
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
