/** The node types: dragged onto the canvas, or added by a click or a key. */
import { GROUPS, NODE_TYPES } from "@/models/nodeTypes";
import { DRAGGED } from "./Canvas";
import { t } from "./text";

export function Palette({ onAdd }: { onAdd: (type: string) => void }) {
  return (
    <nav className="palette" aria-label={t("palette")}>
      {GROUPS.map((group) => (
        <section key={group}>
          <h3>{t(group)}</h3>
          {NODE_TYPES.filter((each) => each.group === group).map((each) => (
            <button
              key={each.name}
              type="button"
              className={`palette-item group-${group}`}
              draggable
              onDragStart={(event) => event.dataTransfer.setData(DRAGGED, each.name)}
              onClick={() => onAdd(each.name)}
            >
              <span className="flow-node-icon" aria-hidden="true">
                <svg viewBox="0 0 16 16" width="14" height="14" className="icon">
                  <path d={each.icon} />
                </svg>
              </span>
              {each.name.replaceAll("_", " ")}
            </button>
          ))}
        </section>
      ))}
    </nav>
  );
}
