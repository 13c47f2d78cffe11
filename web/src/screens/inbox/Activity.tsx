/** History in sentences that the server makes, and comments. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Moment } from "@/components/Moment";
import { Problem } from "@/components/Problem";
import { Text } from "@/components/Value";
import { type Hold, comment as addComment, getComments, getHistory } from "@/services/holds";
import { word } from "@/words";
import { t } from "./text";

export function Activity({ hold }: { hold: Hold }) {
  const client = useQueryClient();
  const history = useQuery({ queryKey: ["history", hold.id, hold.version], queryFn: () => getHistory(hold.id) });
  const comments = useQuery({ queryKey: ["comments", hold.id], queryFn: () => getComments(hold.id) });
  const [text, setText] = useState("");
  const adding = useMutation({
    mutationFn: () => addComment(hold.id, text.trim()),
    onSuccess: () => {
      setText("");
      void client.invalidateQueries({ queryKey: ["comments", hold.id] });
      void client.invalidateQueries({ queryKey: ["history", hold.id] });
    },
  });
  return (
    <div className="activity">
      {history.isError ? <Problem error={history.error} onRetry={() => void history.refetch()} /> : null}
      <ol className="history">
        {history.data?.map((entry) => (
          <li key={entry.id}>
            <Moment at={entry.at} />
            <span>{entry.text}</span>
          </li>
        ))}
      </ol>
      {comments.data && comments.data.length > 0 ? (
        <ul className="comments">
          {comments.data.map((each) => (
            <li key={each.id}>
              <p className="muted small">
                {each.by} <Moment at={each.at} />
              </p>
              <Text text={each.text} />
            </li>
          ))}
        </ul>
      ) : null}
      <form
        className="add-comment"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim()) adding.mutate();
        }}
      >
        <label className="field-label" htmlFor="new-comment">
          {t("addComment")}
        </label>
        <textarea id="new-comment" rows={2} value={text} onChange={(event) => setText(event.target.value)} />
        {adding.isError ? <Problem error={adding.error} /> : null}
        <button type="submit" className="button" disabled={adding.isPending || !text.trim()}>
          {word("comment")}
        </button>
      </form>
    </div>
  );
}
