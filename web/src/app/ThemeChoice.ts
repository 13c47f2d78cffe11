import { createContext } from "react";
import type { Theme } from "@/services/settings";

/** Sets the theme of the page. */
export const ThemeChoice = createContext<(theme: Theme) => void>(() => {});
