import type { Theme } from "@/app/theme";
import type { Preferences } from "@/services/settings";

/** The page's own word for a theme. */
export function themeOf(kept: Preferences["theme"]): Theme {
  return kept === "system" ? "auto" : kept;
}
