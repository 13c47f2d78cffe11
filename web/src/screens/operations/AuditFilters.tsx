/** What the list of the audit shows: a text anywhere, parts of a person and an action, and a span of time. */
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, type HTMLInputTypeAttribute, useState } from "react";
import { type AuditWords, auditWords } from "@/models/auditFilter";
import { t } from "./text";

const FIELDS = [
  { name: "q", label: t("anyText"), example: t("anyTextExample"), type: "search" },
  { name: "actor", label: t("actor"), example: t("actorExample"), type: "search" },
  { name: "action", label: t("action"), example: t("actionExample"), type: "search" },
  { name: "since", label: t("after"), example: "", type: "datetime-local" },
  { name: "until", label: t("before"), example: "", type: "datetime-local" },
] as const satisfies readonly { name: keyof AuditWords; label: string; example: string; type: HTMLInputTypeAttribute }[];

/** `onClear`: only where something is filtered. */
export function AuditFilters({ given, onClear }: { given: AuditWords; onClear: (() => void) | undefined }) {
  const navigate = useNavigate();
  const [words, setWords] = useState(given);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void navigate({ to: "/operations/$panel", params: { panel: "audit" }, search: auditWords(words) });
  };
  const fieldOf = ({ name, label, example, type }: (typeof FIELDS)[number]) => (
    <label key={name}>
      <span>{label}</span>
      <input type={type} value={words[name] ?? ""} placeholder={example || undefined} maxLength={200} onChange={(event) => setWords({ ...words, [name]: event.target.value })} />
    </label>
  );
  const [text, ...others] = FIELDS;
  return (
    <form className="filter" aria-label={t("filter")} onSubmit={submit}>
      {fieldOf(text)}
      <details className="more-filters" open={others.some(({ name }) => given[name])}>
        <summary>{t("moreFilters")}</summary>
        <div className="filter">{others.map(fieldOf)}</div>
      </details>
      <button type="submit" className="button">
        {t("filter")}
      </button>
      {onClear ? (
        <button type="button" className="button quiet" onClick={onClear}>
          {t("clear")}
        </button>
      ) : null}
    </form>
  );
}
