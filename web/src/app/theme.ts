/** Light, dark, or as the system prefers. Kept in this browser. */
import { useEffect, useState } from "react";

export type Theme = "auto" | "light" | "dark";
const KEY = "holdfast.theme";
const DARK = "(prefers-color-scheme: dark)";

export function readTheme(): Theme {
  const kept = window.localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "auto";
}

export function useTheme(): { theme: Theme; scheme: "light" | "dark"; setTheme: (theme: Theme) => void } {
  const [theme, setTheme] = useState(readTheme);
  const [systemDark, setSystemDark] = useState(() => window.matchMedia(DARK).matches);
  useEffect(() => {
    const media = window.matchMedia(DARK);
    const told = () => setSystemDark(media.matches);
    media.addEventListener("change", told);
    return () => media.removeEventListener("change", told);
  }, []);
  const scheme = theme === "auto" ? (systemDark ? "dark" : "light") : theme;
  useEffect(() => {
    document.documentElement.dataset["theme"] = scheme;
    window.localStorage.setItem(KEY, theme);
  }, [scheme, theme]);
  return { theme, scheme, setTheme };
}
