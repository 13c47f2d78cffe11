/** One section of a form: folded to its name, or open with its settings. */
import { useId } from "react";
import type { ConfigField } from "@/models/configSchema";
import { type Config, textIn, without } from "@/models/documentData";
import { FIELD_KINDS, hasOptions, limitsOf, withKind } from "@/models/formSections";
import type { Problem } from "@/services/documents";
import { Labelled } from "./Labelled";
import { FieldProblems } from "./Problems";
import { RowsField } from "./RowsField";
import { t } from "./text";
import { YamlField } from "./YamlField";

type SectionProps = {
  section: Config;
  at: number;
  count: number;
  isOpen: boolean;
  problems: Problem[];
  onOpen: () => void;
  onMove: (by: number) => void;
  onRemove: () => void;
  onChange: (section: Config, key: string) => void;
};

const USUAL_KIND = "text";
const LIMITS: Record<string, string> = { min: t("min"), max: t("max"), step: t("step"), min_length: t("minLength"), max_length: t("maxLength") };

export function SectionEditor({ section, at, count, isOpen, problems, onOpen, onMove, onRemove, onChange }: SectionProps) {
  const type = textIn(section, "type");
  const name = textIn(section, "label") || textIn(section, "title") || textIn(section, "field") || (type === "decision" ? t("decision") : t("context"));
  return (
    <li className={problems.some((each) => each.severity === "error") ? "section wrong" : "section"}>
      <div className="section-head">
        <button type="button" className="section-name" aria-expanded={isOpen} onClick={onOpen}>
          <strong>{name}</strong>
          <span className="muted small">{type === "input" ? textIn(section, "kind") || USUAL_KIND : type}</span>
        </button>
        <span className="row-tools">
          <button type="button" className="button quiet" aria-label={t("up", { name })} disabled={at === 0} onClick={() => onMove(-1)}>↑</button>
          <button type="button" className="button quiet" aria-label={t("down", { name })} disabled={at === count - 1} onClick={() => onMove(1)}>↓</button>
          <button type="button" className="button quiet" aria-label={t("removeRow", { name })} onClick={onRemove}>×</button>
        </span>
      </div>
      <FieldProblems problems={problems} id={`section-${at}-problems`} />
      {isOpen ? <Fields section={section} onChange={onChange} /> : null}
    </li>
  );
}

const OPTION: ConfigField[] = [optionField("id"), optionField("label"), { ...optionField("variant"), kind: "choice", choices: ["secondary", "primary", "danger"], initial: "secondary" }];
const CHOICE: ConfigField[] = [optionField("id"), optionField("label")];

function optionField(name: string): ConfigField {
  return { name, kind: "text", isRequired: name === "id", help: "", choices: [], initial: undefined, fields: [] };
}

function Fields({ section, onChange }: { section: Config; onChange: (section: Config, key: string) => void }) {
  const id = useId();
  const type = textIn(section, "type");
  const limits = limitsOf(section);
  const set = (key: string, value: unknown) => onChange(without({ ...section, [key]: value }), key);
  const text = (key: string, label: string) => (
    <Labelled key={key} label={label} id={`${id}-${key}`}>
      <input id={`${id}-${key}`} autoComplete="off" value={String(section[key] ?? "")} onChange={(event) => set(key, event.target.value === "" ? undefined : event.target.value)} />
    </Labelled>
  );
  if (type === "context") {
    return (
      <div className="section-fields">
        {text("title", t("title"))}
        <Labelled label={t("content")} id={`${id}-content`}>
          {typeof section["content"] === "string" || section["content"] === undefined ? (
            <textarea id={`${id}-content`} rows={3} value={String(section["content"] ?? "")} onChange={(event) => set("content", event.target.value)} />
          ) : (
            <YamlField id={`${id}-content`} value={section["content"]} onChange={(value) => set("content", value)} />
          )}
        </Labelled>
        {text("visible_if", t("visibleIf"))}
      </div>
    );
  }
  return (
    <div className="section-fields">
      {type === "input" ? (
        <div className="pair-even">
          {text("field", t("field"))}
          <Labelled label={t("kind")} id={`${id}-kind`}>
            <select id={`${id}-kind`} value={textIn(section, "kind") || "text"} onChange={(event) => onChange(withKind(section, event.target.value), "kind")}>
              {FIELD_KINDS.map((each) => <option key={each}>{each}</option>)}
            </select>
          </Labelled>
        </div>
      ) : null}
      <div className="pair-even">
        {text("label", t("label"))}
        {text("help", t("help"))}
      </div>
      {hasOptions(section) ? <RowsField label={t("options")} fields={type === "decision" ? OPTION : CHOICE} rows={Array.isArray(section["options"]) ? section["options"] : []} onChange={(rows) => set("options", rows)} /> : null}
      {section["kind"] === "table" ? <Labelled label={t("columns")} id={`${id}-columns`}><YamlField id={`${id}-columns`} value={section["columns"]} onChange={(value) => set("columns", value)} /></Labelled> : null}
      {section["kind"] === "currency" ? text("currency", t("currency")) : null}
      {limits.length > 0 ? <div className="pair-even">{limits.map((each) => (each === "pattern" ? text(each, t("pattern")) : number(each, LIMITS[each]!)))}</div> : null}
      {type === "input" ? (
        <>
          <Labelled label={t("default")} id={`${id}-default`}>
            <YamlField id={`${id}-default`} rows={1} value={section["default"]} onChange={(value) => set("default", value)} />
          </Labelled>
          <label className="choice"><input type="checkbox" checked={section["required"] === true} onChange={(event) => set("required", event.target.checked || undefined)} />{t("required")}</label>
        </>
      ) : null}
      {text("visible_if", t("visibleIf"))}
      {type === "input" ? <div className="pair-even">{text("required_if", t("requiredIf"))}{text("readonly_if", t("readonlyIf"))}</div> : null}
    </div>
  );

  function number(key: string, label: string) {
    return (
      <Labelled key={key} label={label} id={`${id}-${key}`}>
        <input id={`${id}-${key}`} inputMode="decimal" value={String(section[key] ?? "")} onChange={(event) => set(key, event.target.value === "" ? undefined : Number.isNaN(Number(event.target.value)) ? event.target.value : Number(event.target.value))} />
      </Labelled>
    );
  }
}
