/** Light, dark, or as the system prefers. The browser keeps the last choice for the first paint of the next start. */
import { useEffect, useState } from "react";
import type { Theme } from "@/services/settings";

const KEY = "holdfast.theme";
const DARK = "(prefers-color-scheme: dark)";

function keptTheme(): Theme {
  const kept = window.localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function useTheme(): { scheme: "light" | "dark"; setTheme: (theme: Theme) => void } {
  const [theme, setTheme] = useState(keptTheme);
  const [systemDark, setSystemDark] = useState(() => window.matchMedia(DARK).matches);
  useEffect(() => {
    const media = window.matchMedia(DARK);
    const listener = () => setSystemDark(media.matches);
    media.addEventListener("change", listener);
    return () => media.removeEventListener("change", listener);
  }, []);
  const scheme = theme === "system" ? (systemDark ? "dark" : "light") : theme;
  useEffect(() => {
    document.documentElement.dataset["theme"] = scheme;
    window.localStorage.setItem(KEY, theme);
  }, [scheme, theme]);
  return { scheme, setTheme };
}
