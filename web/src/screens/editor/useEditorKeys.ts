/** Keys of the editor that work wherever the focus is, except in fields, which have their own undo. */
import { useEffect, useEffectEvent, useRef } from "react";
import { type Config, partsIn, pasteNodes } from "@/models/documentData";
import type { Selection } from "./Canvas";
import type { EditedText } from "./useText";

type KeysProps = { edited: EditedText; selection: Selection; onSave: () => void; onSelect: (selection: Selection) => void; mayWrite: boolean };

export function useEditorKeys({ edited, selection, onSave, onSelect, mayWrite }: KeysProps): void {
  const copied = useRef<{ nodes: Config[]; edges: Config[] }>({ nodes: [], edges: [] });
  const pressed = useEffectEvent((event: KeyboardEvent) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || !mayWrite) return;
    const key = event.key.toLowerCase();
    if (key === "s") {
      event.preventDefault();
      onSave();
      return;
    }
    if (isTyped(event.target)) return;
    if (key === "z" || key === "y") {
      event.preventDefault();
      if (key === "y" || event.shiftKey) edited.redo();
      else edited.undo();
    }
    if (key === "c" && selection.nodes.length > 0 && window.getSelection()?.isCollapsed !== false) {
      const chosen = new Set(selection.nodes);
      copied.current = {
        nodes: partsIn(edited.data, "nodes").filter((each) => chosen.has(String(each["id"]))),
        edges: partsIn(edited.data, "edges").filter((each) => chosen.has(String(each["source"])) && chosen.has(String(each["target"]))),
      };
    }
    if (key === "v" && copied.current.nodes.length > 0) {
      event.preventDefault();
      const pasted = pasteNodes(edited.data, copied.current.nodes, copied.current.edges);
      edited.change(() => pasted.data);
      onSelect({ nodes: pasted.ids, edges: [] });
    }
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => pressed(event);
    window.addEventListener("keydown", listener);
    return () => window.removeEventListener("keydown", listener);
  }, []);
}

function isTyped(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}
