export const inbox = {
  title: "Inbox",
  empty: "There is nothing here yet.",
} as const;
