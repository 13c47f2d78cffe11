/** Takes a decision back while its window is open: also after a reload, when the message below is gone. */
import { useQueryClient } from "@tanstack/react-query";
import { Problem } from "@/components/Problem";
import { useAction } from "@/components/useAction";
import { useOffline } from "@/live/useLive";
import { type Hold, undoMany } from "@/services/holds";
import { forgetPlaced } from "@/services/session";
import { word } from "@/words";

export function UndoButton({ hold, onUndone }: { hold: Hold; onUndone: (hold: Hold) => void }) {
  const undoing = useUndo([hold.id], ([restored]) => restored && onUndone(restored));
  const isOffline = useOffline();
  return (
    <div>
      <button type="button" className="button" disabled={undoing.isPending || isOffline} onClick={() => undoing.mutate()}>{word("undo")}</button>
      {undoing.isError ? <Problem error={undoing.error} /> : null}
    </div>
  );
}

/** All that can still be undone; an error only if none could. */
export function useUndo(ids: readonly string[], onUndone: (holds: Hold[]) => void) {
  const client = useQueryClient();
  return useAction({
    mutationFn: () => undoMany(ids),
    onSuccess: (restored) => {
      forgetPlaced(restored.map((each) => each.id));
      for (const each of restored) {
        client.setQueryData(["hold", each.id], each);
        void client.invalidateQueries({ queryKey: ["draft", each.id] });
      }
      onUndone(restored);
    },
  });
}
