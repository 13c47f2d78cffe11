/** Notes and groups of a document, as a canvas draws them: behind the nodes, and no note over a node. */
import { type CanvasView, type Placed, placedNodes } from "./canvasView";
import { type FlowData, isRecord, recordIn, textIn } from "./documentData";
import { plainText } from "./values";

export type CanvasNote = { id: string; text: string; x: number; y: number; width: number; height: number };
export type CanvasGroup = { id: string; label: string; x: number; y: number; width: number; height: number };

const NOTE = { width: 208, line: 20, letters: 26, most: 12, pad: 24 };
const GAP = 24;
const ROOM = { side: 16, head: 36 };

/** Around the nodes that it names. One without nodes that exist is not drawn. */
export function groupsOf(data: FlowData, view: CanvasView): CanvasGroup[] {
  const places = placedNodes(view);
  return recordsIn(data, "groups").flatMap((each, at) => {
    const ids = Array.isArray(each["nodes"]) ? each["nodes"] : [];
    const inside = places.filter((node) => ids.includes(node.id));
    if (inside.length === 0) return [];
    const [left, top] = [Math.min(...inside.map(({ x }) => x)) - ROOM.side, Math.min(...inside.map(({ y }) => y)) - ROOM.head];
    const right = Math.max(...inside.map(({ x, width }) => x + width)) + ROOM.side;
    const bottom = Math.max(...inside.map(({ y, height }) => y + height)) + ROOM.side;
    return [{ id: textIn(each, "id") || String(at), label: plainText(textIn(each, "label")), x: left, y: top, width: right - left, height: bottom - top }];
  });
}

/** Where the document places them, else one below the other at the left of the graph. What would cover a node, a group or a note moves down. */
export function notesOf(data: FlowData, view: CanvasView): CanvasNote[] {
  const taken: Omit<Placed, "id">[] = [...placedNodes(view), ...groupsOf(data, view)];
  const left = Math.min(0, ...taken.map(({ x }) => x)) - NOTE.width - 2 * GAP;
  const top = taken.length > 0 ? Math.min(...taken.map(({ y }) => y)) : 0;
  return recordsIn(data, "notes").map((each, at) => {
    const text = plainText(textIn(each, "text"));
    const { x, y } = recordIn(each, "position");
    const box = { x: typeof x === "number" ? x : left, y: typeof y === "number" ? y : top, width: NOTE.width, height: heightOf(text) };
    for (let other = covered(box, taken); other; other = covered(box, taken)) box.y = other.y + other.height + GAP;
    taken.push(box);
    return { id: textIn(each, "id") || String(at), text, ...box };
  });
}

function covered(box: Omit<Placed, "id">, taken: readonly Omit<Placed, "id">[]): Omit<Placed, "id"> | undefined {
  return taken.find((other) => box.x < other.x + other.width && other.x < box.x + box.width && box.y < other.y + other.height && other.y < box.y + box.height);
}

/** A longer text is scrolled. */
function heightOf(text: string): number {
  const lines = text.split("\n").reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / NOTE.letters)), 0);
  return Math.min(NOTE.most, lines) * NOTE.line + NOTE.pad;
}

function recordsIn(data: FlowData, key: string): FlowData[] {
  const found = data[key];
  return Array.isArray(found) ? found.filter(isRecord) : [];
}
