export const flows = {
  title: "Flows",
  empty: "There is nothing here yet.",
} as const;
