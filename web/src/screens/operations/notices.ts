/** The states of notifications, and what an empty list of them says. */
import type { NoticeState } from "@/services/operations";
import { noticeTopics } from "@/locales/en/noticeTopics";
import { textOf } from "@/locales/text";
import { t } from "./text";

const topicText = textOf(noticeTopics);

export const NOTICES: Record<NoticeState, { label: string; empty: string; hint: string }> = {
  failed: { label: t("noticesFailed"), empty: t("noFailed"), hint: t("noFailedHint") },
  waiting: { label: t("noticesWaiting"), empty: t("noWaiting"), hint: t("noWaitingHint") },
  sent: { label: t("noticesSent"), empty: t("noSent"), hint: t("noSentHint") },
  unneeded: { label: t("noticesUnneeded"), empty: t("noUnneeded"), hint: t("noUnneededHint") },
};

/** What a notification is about; of a topic that only a newer server has, its own name. */
export function topicWord(topic: string): string {
  return Object.hasOwn(noticeTopics, topic) ? topicText(topic as keyof typeof noticeTopics) : topic;
}

export function noticeStateOf(given: string | undefined): NoticeState {
  return given !== undefined && Object.hasOwn(NOTICES, given) ? (given as NoticeState) : "failed";
}
