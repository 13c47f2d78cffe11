/** A node of the graph: icon, word and colour of its state, and a button that opens its step. */
import { type KeyboardEvent, memo } from "react";
import { Icon } from "@/components/Icon";
import type { GraphNode, NodeFact } from "@/models/graph";
import { PAUSED } from "@/models/timeline";
import { visitWord } from "@/words";
import { t } from "./text";

type BoxProps = { node: GraphNode; fact: NodeFact | undefined; isShown: boolean; isReachable: boolean; onOpen: (node: string) => void; onToggle: (node: string) => void };

const MOST_LETTERS = 34;
const SIGN_ROOM = 20;

export const GraphNodeBox = memo(function GraphNodeBox({ node, fact, isShown, isReachable, onOpen, onToggle }: BoxProps) {
  if (node.label === "") return <circle className="dot" cx={node.x + node.width / 2} cy={node.y + node.height / 2} r={node.width / 2 - 1} />;
  const shown = fact ? visitWord(fact.state) : null;
  const word = shown?.word ?? t("later");
  const framed = node.inside === "open";
  // Beside the sign of its state; a button in front of the name takes the same room.
  const middle = node.width / 2 - (shown && !node.inside ? SIGN_ROOM / 2 : 0);
  return (
    <g className={`node ${node.shape} ${fact?.state ?? ""} ${isShown ? "shown" : ""}`} transform={`translate(${node.x} ${node.y})`}>
      {/* oxlint-disable-next-line jsx-a11y/prefer-tag-over-role -- SVG has no buttons */}
      <g role="button" data-stop={node.id} tabIndex={isReachable ? 0 : -1} onClick={() => onOpen(node.id)} onKeyDown={(event) => pressed(event, () => onOpen(node.id))}>
        <title>{t("openNode", { node: node.id, state: word })}</title>
        <desc>{node.detail}</desc>
        {node.shape === "map" ? <rect className="box" x={4} y={4} width={node.width} height={node.height} rx={9} /> : null}
        <rect className="box" width={node.width} height={node.height} rx={9} />
        {node.shape === "subflow" ? <rect className="inner" x={3.5} y={3.5} width={node.width - 7} height={node.height - 7} rx={6} /> : null}
        <text className="name" x={middle} y={shown || framed ? 19 : node.height / 2 + 5}>{node.label.slice(0, MOST_LETTERS)}</text>
        {shown ? <text className="note" x={middle} y={35}>{noteOf(word, fact!, node.width - (node.inside ? 2 : 1) * SIGN_ROOM - 12)}</text> : null}
        {shown ? (
          <g className="sign" transform={`translate(${node.width - 25} 14)`}>
            <circle className="disc" cx={8} cy={8} r={9} />
            <g transform="translate(2 2) scale(.75)"><Icon name={shown.icon} /></g>
          </g>
        ) : null}
      </g>
      {node.inside ? <Toggle node={node} onToggle={onToggle} /> : null}
    </g>
  );
});

function Toggle({ node, onToggle }: { node: GraphNode; onToggle: (node: string) => void }) {
  const label = t(node.inside === "open" ? "closeInside" : "openInside", { node: node.id });
  return (
    // oxlint-disable-next-line jsx-a11y/prefer-tag-over-role -- SVG has no buttons
    <g className="toggle" role="button" tabIndex={0} aria-expanded={node.inside === "open"} transform="translate(4 9)" onClick={() => onToggle(node.id)} onKeyDown={(event) => pressed(event, () => onToggle(node.id))}>
      <title>{label}</title>
      <rect width={24} height={24} rx={6} />
      <path d={node.inside === "open" ? "M7 12h10" : "M7 12h10M12 7v10"} />
    </g>
  );
}

function pressed(event: KeyboardEvent, act: () => void): void {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  act();
}

const LETTER = 5.6;

/** In a node with little `room` the icon alone says the state. */
export function noteOf(word: string, fact: NodeFact, room: number): string {
  const counts = fact.items > 0 ? t("items", { done: fact.done, count: fact.items }) : fact.visits > 1 ? t("nodeVisits", { count: fact.visits }) : "";
  const state = fact.state === PAUSED ? t("pausedNote") : word.toLowerCase();
  const whole = [state, counts].filter(Boolean).join(" · ");
  return counts === "" || whole.length * LETTER <= room ? whole : counts;
}
