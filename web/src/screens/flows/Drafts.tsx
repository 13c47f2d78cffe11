/** Documents that are being written. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { isLost } from "@/components/isLost";
import { Moment } from "@/components/Moment";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { listDocuments } from "@/services/documents";
import { t } from "./text";

const SHOWN = 5;
const NAME = /^[a-z0-9][a-z0-9._-]{0,99}$/;

export function Drafts() {
  const [isWhole, setWhole] = useState(false);
  const documents = useQuery({ queryKey: ["documents", "list"], queryFn: listDocuments });
  const drafts = documents.data?.filter((each) => each.savedBy !== "") ?? [];
  if (documents.isPending) return <Skeleton rows={1} />;
  if (isLost(documents)) return <Problem error={documents.error} onRetry={() => void documents.refetch()} />;
  if (drafts.length === 0) return null;
  return (
    <section className="panel flow-part" aria-labelledby="drafts-title">
      <h2 id="drafts-title">{t("drafts")}</h2>
      <ul className="draft-list">
        {drafts.slice(0, isWhole ? undefined : SHOWN).map((each) => (
          <li key={each.name}>
            <Link to="/editor/$document" params={{ document: each.name }}>
              {each.name}
            </Link>
            <span className="muted small">
              {t("draftBy", { person: each.savedBy })} <Moment at={each.savedAt} />
            </span>
            {each.version ? null : <span className="muted small">{t("notDeployed")}</span>}
          </li>
        ))}
      </ul>
      {drafts.length > SHOWN && !isWhole ? (
        <button type="button" className="button quiet" onClick={() => setWhole(true)}>
          {t("more", { count: drafts.length - SHOWN })}
        </button>
      ) : null}
    </section>
  );
}

/** The way to a flow that is made in the editor. */
export function NewDocument() {
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [isWrong, setWrong] = useState(false);
  const create = (event: FormEvent) => {
    event.preventDefault();
    if (NAME.test(name)) void navigate({ to: "/editor/$document", params: { document: name } });
    else setWrong(true);
  };
  return (
    <form className="new-document panel flow-part" onSubmit={create}>
      <label htmlFor="new-document" className="field-label">
        {t("nameOfNew")}
      </label>
      <span className="new-document-row">
        <input id="new-document" ref={(element) => element?.focus()} value={name} autoComplete="off" placeholder={t("newName")} aria-invalid={isWrong || undefined} aria-describedby="new-document-help" onChange={(event) => { setName(event.target.value); setWrong(false); }} />
        <button type="submit" className="button">
          {t("create")}
        </button>
      </span>
      <p id="new-document-help" className={isWrong ? "field-error small" : "muted small"}>
        {t("nameHelp")}
      </p>
    </form>
  );
}
