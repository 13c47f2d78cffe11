/** Keys of the editor that work wherever the focus is, except in fields, which have their own undo. */
import { useEffect, useEffectEvent, useRef } from "react";
import { useKeys } from "@/app/useKeys";
import type { Selection } from "@/models/canvasSelection";
import { type Config, partsIn, pasteNodes } from "@/models/documentData";
import { isTyping } from "@/models/keys";
import { t } from "./text";
import type { EditedText } from "./useText";

type KeysProps = { edited: EditedText; selection: Selection; onSave: () => void; onSelect: (selection: Selection) => void; onRemove: (selection: Selection) => void; isChanged: boolean; mayWrite: boolean };

export function useEditorKeys({ edited, selection, onSave, onSelect, onRemove, isChanged, mayWrite }: KeysProps): void {
  // Answered below and by the canvas; here they are only listed.
  useKeys([
    { keys: "ArrowUp ArrowDown ArrowLeft ArrowRight", group: t("editor"), label: t("keysCanvas") },
    { keys: "Enter", group: t("editor"), label: t("keysSelect") },
    ...(mayWrite
      ? [
          { keys: "Delete", group: t("editor"), label: t("keysRemove") },
          { keys: "Mod+s", group: t("editor"), label: t("keysSave") },
          { keys: "Mod+z", group: t("editor"), label: t("keysUndo") },
          { keys: "Mod+Shift+z", group: t("editor"), label: t("keysRedo") },
        ]
      : []),
  ]);
  const copied = useRef<{ nodes: Config[]; edges: Config[] }>({ nodes: [], edges: [] });
  const pressed = useEffectEvent((event: KeyboardEvent) => {
    if (isRemoval(event) && mayWrite && selection.nodes.length + selection.edges.length > 0) {
      event.preventDefault();
      return onRemove(selection);
    }
    if (!(event.ctrlKey || event.metaKey) || event.altKey || !mayWrite) return;
    const key = event.key.toLowerCase();
    if (key === "s") {
      event.preventDefault();
      // What the server has already would become a draft of the same text.
      if (isChanged) onSave();
      return;
    }
    if (event.target instanceof HTMLElement && isTyping(event.target)) return;
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

/** Only on the canvas, or where nothing has the focus: elsewhere the keys belong to what has it. */
function isRemoval(event: KeyboardEvent): boolean {
  if (!["Delete", "Backspace"].includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return false;
  const { target } = event;
  return target === document.body || (target instanceof Element && target.closest(".canvas") !== null && target.closest("button") === null);
}
