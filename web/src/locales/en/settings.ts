export const settings = {
  title: "Settings",
  empty: "There is nothing here yet.",
} as const;
