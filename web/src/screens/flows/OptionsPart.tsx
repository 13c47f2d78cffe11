import type { ReactNode } from "react";
import type { Flow } from "@/services/flows";
import { t } from "./text";
import { versionName } from "./versions";

export type Options = { key: string; lane: string; priority: string; breaks: string[] };
type Named = "key" | "lane" | "priority";
type OptionsProps = {
  flow: Flow;
  version: string;
  options: Options;
  errors: Record<string, string>;
  onVersion: (id: string) => void;
  onChange: (name: Named, value: string) => void;
};

export function OptionsPart({ flow, version, options, errors, onVersion, onChange }: OptionsProps) {
  const text = (name: Named) => ({
    id: `start-${name}`,
    autoComplete: "off",
    value: options[name],
    "aria-invalid": errors[name] ? true : undefined,
    "aria-describedby": `start-${name}-notes`,
    onChange: (event: { target: { value: string } }) => onChange(name, event.target.value),
  });
  return (
    <section className="panel flow-part" aria-label={t("options")}>
      <h2>{t("options")}</h2>
      <Option name="version" label={t("version")} help="" error={errors["version"]}>
        <select id="start-version" aria-describedby="start-version-notes" value={version} onChange={(event) => onVersion(event.target.value)}>
          {flow.versions.map((each) => (
            <option key={each.id} value={each.id}>
              {each.isCurrent ? t("versionCurrent", { version: versionName(each) }) : versionName(each)}
            </option>
          ))}
        </select>
      </Option>
      <Option name="key" label={t("key")} help={t("keyHelp")} error={errors["key"]}>
        <input {...text("key")} maxLength={200} />
      </Option>
      <div className="pair-even">
        <Option name="lane" label={t("lane")} help={t("laneHelp")} error={errors["lane"]}>
          <input {...text("lane")} maxLength={200} />
        </Option>
        <Option name="priority" label={t("priority")} help={t("priorityHelp")} error={errors["priority"]}>
          <input {...text("priority")} inputMode="numeric" />
        </Option>
      </div>
    </section>
  );
}

type OptionProps = { name: string; label: string; help: string; error: string | undefined; children: ReactNode };

function Option({ name, label, help, error, children }: OptionProps) {
  return (
    <div className="field" data-field={name}>
      <label className="field-label" htmlFor={`start-${name}`}>
        {label}
      </label>
      {children}
      <div id={`start-${name}-notes`}>
        {help ? <p className="muted small">{help}</p> : null}
        {error ? <p className="field-error small">{error}</p> : null}
      </div>
    </div>
  );
}
