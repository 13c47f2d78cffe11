export const runs = {
  title: "Runs",
  empty: "There is nothing here yet.",
} as const;
