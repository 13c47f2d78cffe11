/** The node types: dragged onto the canvas, or added by a click or a key. */
import { useRoving } from "@/components/useRoving";
import { GROUPS, NODE_TYPES } from "@/models/nodeTypes";
import { DRAGGED } from "./Canvas";
import { t } from "./text";

export function Palette({ onAdd }: { onAdd: (type: string) => void }) {
  const names = GROUPS.flatMap((each) => NODE_TYPES.filter((type) => type.group === each).map((type) => type.name));
  const { reachable, group } = useRoving(names);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- the keys of its buttons
    <nav className="palette" aria-label={t("palette")} data-part="palette" {...group}>
      {GROUPS.map((name) => (
        <section key={name}>
          <h3>{t(name)}</h3>
          {NODE_TYPES.filter((each) => each.group === name).map((each) => (
            <button
              key={each.name}
              type="button"
              className={`palette-item group-${name}`}
              data-stop={each.name}
              tabIndex={each.name === reachable ? 0 : -1}
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
