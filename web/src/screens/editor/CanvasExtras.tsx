/** Notes and groups of a document, behind its nodes. They are changed in the settings of the document. */
import type { Node, NodeProps } from "@xyflow/react";
import { t } from "./text";

export type DrawnExtra = Node<{ text: string }, "note" | "group">;

export function NoteView({ data: { text } }: NodeProps<DrawnExtra>) {
  return (
    <div className="canvas-note nowheel" role="note" aria-label={t("note")}>
      {text}
    </div>
  );
}

export function GroupView({ data: { text } }: NodeProps<DrawnExtra>) {
  return <div className="canvas-group">{text}</div>;
}
