/** Settings that are saved as soon as they are chosen. */
import { type ReactNode, useId, useState } from "react";
import { useChangePreferences, usePreferences } from "@/app/usePreferences";
import { Problem } from "@/components/Problem";
import type { Preferences } from "@/services/settings";
import { t } from "./text";

type Save = (change: Partial<Preferences>) => void;

export function Saved({ children }: { children: (chosen: Preferences, save: Save) => ReactNode }) {
  const chosen = usePreferences();
  const saving = useChangePreferences();
  // A click is shown at once, before the cache has it.
  const [clicked, setClicked] = useState<Partial<Preferences>>({});
  const save = (change: Partial<Preferences>) => {
    setClicked((old) => ({ ...old, ...change }));
    saving.mutate(change, { onSettled: () => setClicked({}) });
  };
  return (
    <>
      {children({ ...chosen, ...clicked }, save)}
      <output className="muted small">{saving.isSuccess ? t("saved") : ""}</output>
      {saving.isError ? <Problem error={saving.error} onRetry={() => save(saving.variables)} /> : null}
    </>
  );
}

type SelectProps = { label: string; hint?: string; value: string; options: readonly (readonly [string, string])[]; onChange: (value: string) => void };

export function Select({ label, hint, value, options, onChange }: SelectProps) {
  const id = useId();
  return (
    <label className="setting-field">
      <span>{label}</span>
      <select value={value} aria-describedby={hint ? id : undefined} onChange={(event) => onChange(event.target.value)}>
        {options.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
      {hint ? <span id={id} className="muted small">{hint}</span> : null}
    </label>
  );
}

export function Switch({ label, hint, checked, onChange }: { label: string; hint?: string; checked: boolean; onChange: (on: boolean) => void }) {
  const id = useId();
  return (
    <div className="setting-switch">
      <label>
        <input type="checkbox" checked={checked} aria-describedby={hint ? id : undefined} onChange={(event) => onChange(event.target.checked)} />
        {label}
      </label>
      {hint ? <p id={id} className="muted small">{hint}</p> : null}
    </div>
  );
}
