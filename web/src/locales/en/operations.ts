export const operations = {
  title: "Operations",
  empty: "There is nothing here yet.",
} as const;
