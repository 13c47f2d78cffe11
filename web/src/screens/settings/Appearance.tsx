/** How the page looks and reads. */
import { useNow } from "@/components/useNow";
import { exactTime } from "@/models/time";
import type { Theme } from "@/services/settings";
import { Saved, Select } from "./Choice";
import { t } from "./text";

const THEMES: readonly (readonly [Theme, string])[] = [["system", t("themeSystem")], ["light", t("themeLight")], ["dark", t("themeDark")]];
const LANGUAGES = [["", t("languageEnglish")], ["en-US", t("languageAmerican")]] as const;

function zones(): (readonly [string, string])[] {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const all = ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")];
  return [["", t("zoneBrowser", { zone: own })], ...all.map((zone) => [zone, zone.replaceAll("_", " ")] as const)];
}

export function Appearance() {
  const now = useNow();
  return (
    <Saved>
      {(chosen, save) => (
        <>
          <fieldset className="choices">
            <legend>{t("theme")}</legend>
            {THEMES.map(([name, text]) => (
              <label key={name} className="choice">
                <input type="radio" name="theme" checked={chosen.theme === name} onChange={() => save({ theme: name })} />
                {text}
              </label>
            ))}
          </fieldset>
          <Select label={t("language")} value={chosen.language ?? ""} options={LANGUAGES} onChange={(value) => save({ language: value || null })} />
          <Select label={t("zone")} hint={t("zoneNow", { time: exactTime(new Date(now)) })} value={chosen.zone ?? ""} options={zones()} onChange={(value) => save({ zone: value || null })} />
        </>
      )}
    </Saved>
  );
}
