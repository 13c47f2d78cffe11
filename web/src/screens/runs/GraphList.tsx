/** The nodes of a graph as a list with the same actions, for keys, screen readers and small screens. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "react";
import { Icon } from "@/components/Icon";
import { useRoving } from "@/components/useRoving";
import { StatusBadge } from "@/components/StatusBadge";
import type { GraphPicture } from "@/models/graph";
import { visitWord } from "@/words";
import type { GraphState } from "./Graph";
import { t } from "./text";

const HEIGHT = 44;

export function GraphList({ picture, state }: { picture: GraphPicture; state: GraphState }) {
  const scroll = useRef<HTMLDivElement>(null);
  const nodes = picture.nodes.filter((each) => each.label !== "");
  // oxlint-disable-next-line react/incompatible-library -- the compiler is not used
  const list = useVirtualizer({ count: nodes.length, getScrollElement: () => scroll.current, estimateSize: () => HEIGHT, overscan: 10 });
  const stops = nodes.filter((each) => (state.facts.get(each.id)?.seq ?? -1) >= 0);
  const { reachable, group } = useRoving(stops.map((each) => each.id), (place) => list.scrollToIndex(nodes.indexOf(stops[place]!)));
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex, jsx-a11y/no-static-element-interactions -- what scrolls must be reached by keys
    <div ref={scroll} className="graph-list" tabIndex={stops.length > 0 ? undefined : 0} {...group}>
      <ul aria-label={t("nodes")} style={{ height: list.getTotalSize() }}>
        {list.getVirtualItems().map((item) => {
          const node = nodes[item.index]!;
          const fact = state.facts.get(node.id);
          const depth = node.id.split("/").length - 1;
          return (
            <li key={node.id} className={node.id === state.shown ? "shown" : ""} style={{ transform: `translateY(${item.start}px)`, paddingInlineStart: 16 + depth * 20 }}>
              {node.inside ? (
                <button type="button" className="tree-toggle" aria-expanded={node.inside === "open"} aria-label={t(node.inside === "open" ? "closeInside" : "openInside", { node: node.id })} onClick={() => state.onToggle(node.id)}>
                  <Icon name="arrow" />
                </button>
              ) : null}
              {fact && fact.seq >= 0 ? <button type="button" className="link" data-stop={node.id} tabIndex={node.id === reachable ? 0 : -1} onClick={() => state.onOpen(node.id)}>{node.label}</button> : <span>{node.label}</span>}
              {fact ? <StatusBadge shown={visitWord(fact.state)} /> : <span className="muted small">{t("later")}</span>}
              <span className="muted small">
                {fact && fact.items > 0 ? t("items", { done: fact.done, count: fact.items }) : fact && fact.visits > 1 ? t("nodeVisits", { count: fact.visits }) : ""}
              </span>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
