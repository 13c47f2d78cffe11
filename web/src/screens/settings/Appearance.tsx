/** Applied at once in this browser, and saved on the server. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useContext } from "react";
import { ThemeChoice } from "@/app/ThemeChoice";
import { Problem } from "@/components/Problem";
import { type Preferences, getPreferences, putPreferences } from "@/services/settings";
import { t } from "./text";
import { themeOf } from "./theme";

const THEMES: Record<Preferences["theme"], string> = { system: t("themeSystem"), light: t("themeLight"), dark: t("themeDark") };

export function Appearance() {
  const client = useQueryClient();
  const { theme, setTheme } = useContext(ThemeChoice);
  const kept = useQuery({ queryKey: ["settings", "preferences"], queryFn: getPreferences });
  const saving = useMutation({
    // Read just before: what was chosen elsewhere stays.
    mutationFn: async (change: Partial<Preferences>) => {
      const { chosen, version } = await getPreferences();
      return putPreferences({ chosen: { ...chosen, ...change }, version });
    },
    scope: { id: "preferences" },
    onSuccess: (saved) => client.setQueryData(["settings", "preferences"], saved),
  });
  const choose = (name: Preferences["theme"]) => {
    setTheme(themeOf(name));
    saving.mutate({ theme: name });
  };
  if (kept.isError) return <Problem error={kept.error} onRetry={() => void kept.refetch()} />;
  return (
    <>
      <fieldset className="choices">
        <legend>{t("theme")}</legend>
        {(Object.keys(THEMES) as Preferences["theme"][]).map((name) => (
          <label key={name} className="choice">
            <input type="radio" name="theme" checked={theme === themeOf(name)} onChange={() => choose(name)} />
            {THEMES[name]}
          </label>
        ))}
      </fieldset>
      <output className="muted small">{saving.isSuccess ? t("saved") : ""}</output>
      {saving.isError ? <Problem error={saving.error} /> : null}
    </>
  );
}
