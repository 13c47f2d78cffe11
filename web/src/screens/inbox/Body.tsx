/** What is asked, beside the form: the question's text and what belongs to it. */
import { Markdown } from "@/components/LazyMarkdown";
import { Facts, Value } from "@/components/Value";
import { isRecord } from "@/models/form";
import { afterTitle } from "@/models/title";
import { besideCall, toolCallOf } from "@/models/toolCall";
import type { Hold } from "@/services/holds";
import { t } from "./text";

/** The server's own sentence names the arguments, which have fields here. An author's stays. */
export function titleOf(hold: Hold): string {
  const call = toolCallOf(hold);
  return call === null || !isOwnPrompt(hold) ? hold.title : t("wantsToRun", { agent: call.agent, tool: call.tool });
}

function isOwnPrompt(hold: Hold): boolean {
  return hold.prompt.startsWith("The agent wants to run ");
}

/** The call of a tool is in fields and under Details. */
export function Body({ hold }: { hold: Hold }) {
  const call = toolCallOf(hold);
  const isCall = call !== null;
  const rest = afterTitle(hold.prompt, hold.title);
  const context = isRecord(hold.context) ? Object.entries(isCall ? besideCall(hold.context) : hold.context) : [];
  return (
    <>
      {rest && !(isCall && isOwnPrompt(hold)) ? <Markdown text={rest} /> : null}
      {call !== null && !isOwnPrompt(hold) ? <p>{t("wantsToRun", { agent: call.agent, tool: call.tool })}</p> : null}
      {context.length > 0 ? <Facts value={Object.fromEntries(context)} /> : null}
      {!isRecord(hold.context) && hold.context ? <Value value={hold.context} /> : null}
    </>
  );
}
