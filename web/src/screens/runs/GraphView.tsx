/** The picture of a graph: moved by dragging, keys and buttons. It follows the run until the reader moves it. */
import { type KeyboardEvent, useMemo, useRef, useState } from "react";
import { type GraphNode, type GraphPicture, type View, activeNode, boxOf, centredOn, edgeBox, edgesIn, firstView, fitted, isDrawn, isInside, nodesIn, zoomedAt } from "@/models/graph";
import { inReadingOrder, neighbour } from "@/models/neighbour";
import { focusStop, stopOf } from "@/components/useRoving";
import type { GraphState } from "./Graph";
import { GraphCanvas } from "./GraphCanvas";
import { GraphEdges } from "./GraphEdges";
import { GraphNodeBox } from "./GraphNodeBox";
import { t } from "./text";
import { usePan } from "./usePan";
import { useSize } from "./useSize";

const STEP = 80;
const MOVES: Record<string, { x: number; y: number }> = { ArrowLeft: { x: -STEP, y: 0 }, ArrowRight: { x: STEP, y: 0 }, ArrowUp: { x: 0, y: -STEP }, ArrowDown: { x: 0, y: STEP } };

export function GraphView({ picture, state }: { picture: GraphPicture; state: GraphState }) {
  const element = useRef<HTMLDivElement>(null);
  const size = useSize(element);
  const [chosen, setView] = useState<View | null>(null);
  const [focused, setFocused] = useState("");
  const [follows, setFollows] = useState(true);
  const target = useMemo(() => state.shown || activeNode(picture.nodes, state.facts), [state.shown, state.facts, picture.nodes]);
  // Each the same until the picture is moved or its states change: a large one is not drawn anew for a click elsewhere.
  const view = useMemo(() => {
    const followed = follows ? picture.nodes.find((each) => each.id === target) : undefined;
    const base = chosen ?? firstView(picture, size);
    return followed === undefined || isInside(followed, boxOf(base, size)) ? base : centredOn(followed, base, size);
  }, [follows, picture, target, chosen, size]);
  const move = (next: View) => {
    setFollows(false);
    setView(next);
  };
  usePan(element, view, move);
  const boxes = useMemo(() => new Map(picture.edges.map((each) => [each, edgeBox(each)])), [picture.edges]);
  const box = useMemo(() => boxOf(view, size), [view, size]);
  const nodes = useMemo(() => nodesIn(picture.nodes, box), [picture.nodes, box]);
  const edges = useMemo(() => edgesIn(picture.edges, boxes, box), [picture.edges, boxes, box]);
  const isCanvas = isDrawn(nodes.length, view.zoom);
  const middle = { x: size.width / 2, y: size.height / 2 };
  const drawn = (node: GraphNode) => <GraphNodeBox key={node.id} node={node} fact={state.facts.get(node.id)} isShown={node.id === state.shown} isReachable={node.id === reachable} onOpen={state.onOpen} onToggle={state.onToggle} />;
  // Tab comes to one node: the one that had the focus last, else the one that the page is about.
  const inView = isCanvas ? [] : nodes.filter((each) => each.label !== "");
  const reachable = [focused, target, inReadingOrder(inView)[0]?.id].find((id) => inView.some((each) => each.id === id)) ?? "";
  const goTo = (event: KeyboardEvent<HTMLElement>, from: string) => {
    const found = neighbour(picture.nodes.filter((each) => each.label !== ""), from, event.key);
    const next = picture.nodes.find((each) => each.id === found);
    if (!next) return;
    event.preventDefault();
    setFocused(next.id);
    if (!isInside(next, box)) move(centredOn(next, view, size));
    focusStop(event.currentTarget, next.id);
  };
  const pressed = (event: KeyboardEvent<HTMLElement>) => {
    const stop = event.target === event.currentTarget ? null : stopOf(event.target as Element);
    if (stop !== null) return goTo(event, stop);
    const by = MOVES[event.key];
    if (event.target !== event.currentTarget || by === undefined) return;
    event.preventDefault();
    move({ ...view, x: view.x + by.x / view.zoom, y: view.y + by.y / view.zoom });
  };
  return (
    <>
      <div className="graph-tools" data-repeat="">
        <button type="button" className="button" aria-label={t("zoomOut")} onClick={() => move(zoomedAt(view, 1 / 1.4, middle))}>{"−"}</button>
        <button type="button" className="button" aria-label={t("zoomIn")} onClick={() => move(zoomedAt(view, 1.4, middle))}>{"+"}</button>
        <button type="button" className="button" onClick={() => move(fitted(picture, size))}>{t("fit")}</button>
        <button type="button" className="button" aria-pressed={follows} onClick={() => setFollows(!follows)}>{t("follow")}</button>
      </div>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex, jsx-a11y/no-noninteractive-element-interactions -- what moves must be reached by keys */}
      <section ref={element} className="graph-view" aria-label={t("nodes")} tabIndex={0} onKeyDown={pressed} onFocus={(event) => setFocused(stopOf(event.target) ?? focused)} style={{ height: `min(70vh, ${Math.max(220, Math.ceil(picture.height) + 64)}px)` }}>
        {size.width === 0 ? null : isCanvas ? (
          <GraphCanvas picture={picture} nodes={nodes} edges={edges} view={view} size={size} state={state} />
        ) : (
          <svg role="presentation" width={size.width} height={size.height} viewBox={`${box.left} ${box.top} ${size.width / view.zoom} ${size.height / view.zoom}`}>
            {nodes.filter((each) => each.inside === "open").map(drawn)}
            <GraphEdges edges={edges} taken={state.taken} />
            {nodes.filter((each) => each.inside !== "open").map(drawn)}
          </svg>
        )}
      </section>
    </>
  );
}
