/** History in sentences that the server makes, and comments. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useSession } from "@/app/useSession";
import { Moment } from "@/components/Moment";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { Text } from "@/components/Value";
import { useAction } from "@/components/useAction";
import { useOffline } from "@/live/useLive";
import { partsOf } from "@/models/sentence";
import { type Comment, type Hold, comment as addComment, withdrawQuestion, getComments, getHistory, reply } from "@/services/holds";
import { word } from "@/words";
import { useKeptText } from "./keptDraft";
import { t } from "./text";

export function Activity({ hold }: { hold: Hold }) {
  const client = useQueryClient();
  const history = useQuery({ queryKey: ["history", hold.id, hold.version], queryFn: () => getHistory(hold.id) });
  const comments = useQuery({ queryKey: ["comments", hold.id], queryFn: () => getComments(hold.id) });
  const { person } = useSession();
  const isOffline = useOffline();
  const [text, setText] = useKeptText(`comment.${hold.id}`);
  const adding = useAction({
    mutationFn: () => addComment(hold.id, text.trim()),
    onSuccess: () => {
      setText("");
      renew();
    },
  });
  const renew = () => {
    for (const kind of ["comments", "history", "hold"]) void client.invalidateQueries({ queryKey: [kind, hold.id] });
  };
  return (
    <div className="activity">
      {history.isPending || comments.isPending ? <Skeleton rows={2} /> : null}
      {comments.isError ? <Problem error={comments.error} onRetry={() => void comments.refetch()} /> : null}
      {history.isError ? <Problem error={history.error} onRetry={() => void history.refetch()} /> : null}
      <ol className="history">
        {history.data?.map((entry) => (
          <li key={entry.id}>
            <Moment at={entry.at} />
            <span>{partsOf(entry).map((part, place) => (typeof part === "string" ? part : <Moment key={place} at={part.at} />))}</span>
          </li>
        ))}
      </ol>
      {comments.data && comments.data.length > 0 ? (
        <ul className="comments">
          {comments.data.map((each) => (
            <li key={each.id}>
              <p className="muted small">
                {each.kind === "question" ? t("askedBy", { person: each.by, to: each.to }) : each.kind === "reply" ? t("repliedBy", { person: each.by }) : each.by} <Moment at={each.at} />
              </p>
              <Text text={each.text} />
              {each.isOpen ? (each.by === person ? <Withdraw hold={hold} question={each} onDone={renew} /> : <Reply hold={hold} question={each} onDone={renew} />) : null}
            </li>
          ))}
        </ul>
      ) : null}
      <form
        className="add-comment"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() && !isOffline) adding.mutate();
        }}
      >
        <label className="field-label" htmlFor="new-comment">
          {t("addComment")}
        </label>
        <textarea id="new-comment" rows={2} value={text} onChange={(event) => setText(event.target.value)} />
        {adding.isError ? <Problem error={adding.error} /> : null}
        <button type="submit" className="button" disabled={adding.isPending || isOffline || !text.trim()}>
          {word("comment")}
        </button>
      </form>
    </div>
  );
}

/** Who asked does not answer: they wait, or go on without. */
function Withdraw({ hold, question, onDone }: { hold: Hold; question: Comment; onDone: () => void }) {
  const isOffline = useOffline();
  const withdrawing = useAction({ mutationFn: () => withdrawQuestion(hold.id, question.id), onSuccess: onDone });
  return (
    <>
      {withdrawing.isError ? <Problem error={withdrawing.error} /> : null}
      <button type="button" className="button" disabled={withdrawing.isPending || isOffline} onClick={() => withdrawing.mutate()}>{t("withdrawQuestion")}</button>
    </>
  );
}

function Reply({ hold, question, onDone }: { hold: Hold; question: Comment; onDone: () => void }) {
  const isOffline = useOffline();
  const [text, setText] = useKeptText(`reply.${question.id}`);
  const sending = useAction({ mutationFn: () => reply(hold.id, question.id, text.trim()), onSuccess: () => { setText(""); onDone(); } });
  return (
    <form
      className="add-comment"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() && !isOffline) sending.mutate();
      }}
    >
      <label className="field-label" htmlFor={`reply-${question.id}`}>{t("yourReply")}</label>
      <textarea id={`reply-${question.id}`} rows={2} value={text} onChange={(event) => setText(event.target.value)} />
      {sending.isError ? <Problem error={sending.error} /> : null}
      <button type="submit" className="button" disabled={sending.isPending || isOffline || !text.trim()}>{t("reply")}</button>
    </form>
  );
}
