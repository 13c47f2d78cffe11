/** A value that has no simpler control, as YAML. What cannot be read stays in the field, with the reason. */
import { useState } from "react";
import { isSame } from "@/models/documentData";
import { textOfValue, valueOfText } from "@/models/documentText";
import { t } from "./text";

type YamlFieldProps = { id: string; value: unknown; onChange: (value: unknown) => void; rows?: number };

export function YamlField({ id, value, onChange, rows = 3, ...more }: YamlFieldProps) {
  const [typed, setTyped] = useState<{ text: string; value: unknown; why: string } | null>(null);
  // What was typed stays as it was typed while it means the same.
  const text = typed && (typed.why !== "" || isSame(typed.value, value)) ? typed.text : textOfValue(value);
  const change = (next: string) => {
    try {
      const read = valueOfText(next);
      setTyped({ text: next, value: read, why: "" });
      onChange(read);
    } catch (error) {
      setTyped({ text: next, value, why: error instanceof Error ? error.message : "" });
    }
  };
  return (
    <>
      <textarea id={id} {...more} className="code" spellCheck={false} rows={Math.min(14, Math.max(rows, text.split("\n").length))} value={text} onChange={(event) => change(event.target.value)} />
      {typed?.why ? <p className="field-error small">{t("notYaml", { why: typed.why })}</p> : null}
    </>
  );
}
