import { createContext } from "react";
import type { Theme } from "./theme";

export const ThemeChoice = createContext<{ theme: Theme; setTheme: (theme: Theme) => void }>({
  theme: "auto",
  setTheme: () => {},
});
