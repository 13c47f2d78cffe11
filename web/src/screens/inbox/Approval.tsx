/** The question of an agent whether a tool may run: who wants to run what, and the other calls of the same turn. */
import { useQueries } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Facts } from "@/components/Value";
import { callText, toolCallOf } from "@/models/toolCall";
import { type Conversation, type Hold, getHold } from "@/services/holds";
import { holdWord } from "@/words";
import { t } from "./text";

export function CallDetails({ hold }: { hold: Hold }) {
  const call = toolCallOf(hold);
  if (call === null) return null;
  return (
    <details className="call-details">
      <summary className="small">{t("details")}</summary>
      <Facts value={{ [t("callId")]: call.id, [t("turn")]: call.turn, [t("effect")]: call.effect, [t("holdId")]: hold.id, [t("runId")]: hold.run }} rawNames />
    </details>
  );
}

/** Calls that the model made together. Each is decided alone: the answer names this hold. */
export function TurnCalls({ hold, conversation }: { hold: Hold; conversation: Conversation }) {
  const calls = conversation.messages.find((each) => each.calls.some((call) => call.hold === hold.id))?.calls ?? [];
  const others = calls.flatMap((call) => (call.hold !== null && call.hold !== hold.id ? [call.hold] : []));
  const found = useQueries({ queries: others.map((id) => ({ queryKey: ["hold", id], queryFn: () => getHold(id), retry: false })) });
  if (calls.length < 2) return null;
  const holds = new Map(found.flatMap(({ data }) => (data ? [[data.id, data] as const] : [])));
  return (
    <section className="turn-calls" aria-label={t("turnCalls")}>
      <h3>{t("turnCalls")}</h3>
      <ol>
        {calls.map((call) => {
          const other = call.hold === null ? undefined : holds.get(call.hold);
          const text = callText(call.tool, call.arguments);
          return (
            <li key={call.id} aria-current={call.hold === hold.id ? "true" : undefined}>
              {other ? <Link to="/inbox/$view/$hold" params={{ view: "all", hold: other.id }}>{text}</Link> : <span>{text}</span>}{" "}
              <span className="muted small">
                {call.hold === hold.id ? t("thisCall") : other ? (other.outcome?.label || holdWord(other.status).word) : call.hold === null ? t("noQuestion") : ""}
              </span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
