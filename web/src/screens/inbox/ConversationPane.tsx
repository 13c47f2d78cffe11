/** What was said before an agent asked: the newest turn in view, calls folded, results of tools marked. */
import { useEffect, useRef } from "react";
import { Markdown } from "@/components/LazyMarkdown";
import { Value } from "@/components/Value";
import { callText } from "@/models/toolCall";
import { plainText } from "@/models/values";
import type { Conversation, ConversationMessage } from "@/services/holds";
import { t } from "./text";

export function ConversationPane({ conversation }: { conversation: Conversation }) {
  const list = useRef<HTMLOListElement>(null);
  const count = conversation.messages.length;
  useEffect(() => {
    if (list.current && count > 0) list.current.scrollTop = list.current.scrollHeight;
  }, [count]);
  return (
    <section className="conversation" aria-label={t("conversation")}>
      <h3>{t("conversation")}</h3>
      {conversation.leftOut > 0 ? <p className="muted small">{t("olderMessages", { count: conversation.leftOut })}</p> : null}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys */}
      <ol ref={list} tabIndex={0} aria-label={t("conversation")}>
        {conversation.messages.map((message, place) => (
          <li key={place} className={`said said-${message.role}`}>
            <Said message={message} agent={conversation.agent} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Said({ message, agent }: { message: ConversationMessage; agent: string }) {
  if (message.role === "tool") {
    return (
      <details>
        <summary>
          {t("result")} <span className="untrusted small">{t("untrusted")}</span> {message.failed ? <span className="late small">{t("callFailed")}</span> : null}
        </summary>
        {message.isOmitted ? <p className="muted">{t("omitted")}</p> : <Value value={message.text} />}
      </details>
    );
  }
  return (
    <>
      <p className="said-by small">
        <strong>{message.role === "assistant" ? agent : message.role === "system" ? t("saidSystem") : t("saidUser")}</strong>
        {message.turn > 0 ? <span className="muted"> {t("turnNumber", { turn: message.turn })}</span> : null}
      </p>
      {message.isOmitted ? <p className="muted">{t("omitted")}</p> : null}
      {message.text ? <Markdown text={plainText(message.text)} /> : null}
      {message.calls.map((call) => (
        <details key={call.id}>
          <summary>{t("called", { call: callText(call.tool, call.arguments) })}</summary>
          <Value value={call.arguments} rawNames />
        </details>
      ))}
    </>
  );
}
