/** Two texts by line. */
export type DiffLine = { kind: "same" | "added" | "removed" | "place"; text: string };
const AROUND = 2;
/** Beyond this many pairs of lines the comparison would block the page. */
const MOST = 4_000_000;

/** What differs, with a few lines around it. */
export function linesOf(before: string, after: string): DiffLine[] {
  const [left, right] = [before.split("\n"), after.split("\n")];
  const head = commonHead(left, right);
  const tail = commonHead(left.slice(head).toReversed(), right.slice(head).toReversed());
  const [old, now] = [left.slice(head, left.length - tail), right.slice(head, right.length - tail)];
  const middle = old.length * now.length > MOST ? replaced(old, now) : compared(old, now);
  return folded([...left.slice(0, head).map(same), ...middle, ...left.slice(left.length - tail).map(same)]);
}

function same(text: string): DiffLine {
  return { kind: "same", text };
}

function commonHead(left: string[], right: string[]): number {
  let count = 0;
  while (count < left.length && count < right.length && left[count] === right[count]) count += 1;
  return count;
}

function replaced(old: string[], now: string[]): DiffLine[] {
  return [...old.map((text): DiffLine => ({ kind: "removed", text })), ...now.map((text): DiffLine => ({ kind: "added", text }))];
}

/** By the longest common part. */
function compared(old: string[], now: string[]): DiffLine[] {
  const width = now.length + 1;
  const longest = new Uint32Array((old.length + 1) * width);
  for (let at = old.length - 1; at >= 0; at -= 1) {
    for (let to = now.length - 1; to >= 0; to -= 1) {
      longest[at * width + to] = old[at] === now[to] ? longest[(at + 1) * width + to + 1]! + 1 : Math.max(longest[(at + 1) * width + to]!, longest[at * width + to + 1]!);
    }
  }
  const found: DiffLine[] = [];
  let [at, to] = [0, 0];
  while (at < old.length || to < now.length) {
    if (at < old.length && to < now.length && old[at] === now[to]) {
      found.push({ kind: "same", text: old[at]! });
      at += 1;
      to += 1;
    } else if (to >= now.length || (at < old.length && longest[(at + 1) * width + to]! >= longest[at * width + to + 1]!)) {
      found.push({ kind: "removed", text: old[at]! });
      at += 1;
    } else {
      found.push({ kind: "added", text: now[to]! });
      to += 1;
    }
  }
  return found;
}

function folded(lines: DiffLine[]): DiffLine[] {
  const isNear = lines.map((_, at) => lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some((each) => each.kind !== "same"));
  return lines.flatMap((each, at): DiffLine[] => {
    if (isNear[at]) return [each];
    return at > 0 && !isNear[at - 1] ? [] : [{ kind: "place", text: "…" }];
  });
}
