/** What notifications are about, by the topics of the outbox. */
export const noticeTopics = {
  "hold.created": "Question asked",
  "hold.assigned": "Question reassigned",
  "hold.reminded": "Reminder",
  "hold.escalated": "Question escalated",
  "hold.asked_back": "Asked back, or replied",
  "hold.link": "Link to a question",
  "hold.closed": "Question ended",
  "hold.judge": "Question to an agent",
  "hold.queue": "Question in a queue",
  "queue.out": "Message of a queue",
  "engine.start": "Start on another engine",
} as const;
