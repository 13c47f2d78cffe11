/** Creates a token. Its secret is shown once, here, and kept nowhere. */
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Dialog } from "@/components/Dialog";
import { Problem } from "@/components/Problem";
import { useAction } from "@/components/useAction";
import { createToken } from "@/services/operations";
import { t } from "./text";

const ROLES = { viewer: t("viewer"), member: t("member"), approver: t("approver"), operator: t("operator"), admin: t("admin") };

export function NewToken({ onClose }: { onClose: () => void }) {
  const [secret, setSecret] = useState("");
  return (
    <Dialog title={secret ? t("secretTitle") : t("newToken")} onClose={onClose} isKept={secret !== ""}>
      {secret ? <Secret secret={secret} onClose={onClose} /> : <Form onMade={setSecret} onClose={onClose} />}
    </Dialog>
  );
}

function Form({ onMade, onClose }: { onMade: (secret: string) => void; onClose: () => void }) {
  const client = useQueryClient();
  const [subject, setSubject] = useState("");
  const [role, setRole] = useState("viewer");
  const [note, setNote] = useState("");
  const making = useAction({
    mutationFn: () => createToken(subject.trim(), role, note.trim()),
    // The secret leaves the memory with the dialog.
    gcTime: 0,
    onSuccess: async (secret) => {
      onMade(secret);
      await client.invalidateQueries({ queryKey: ["operations", "tokens"] });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    making.mutate();
  };
  return (
    <form className="confirm" onSubmit={submit}>
      <label>
        <span>{t("subject")}</span>
        <input value={subject} required placeholder={t("subjectExample")} data-autofocus onChange={(event) => setSubject(event.target.value)} />
      </label>
      <label>
        <span>{t("role")}</span>
        <select value={role} onChange={(event) => setRole(event.target.value)}>
          {Object.entries(ROLES).map(([name, label]) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>{t("note")}</span>
        <input value={note} maxLength={200} onChange={(event) => setNote(event.target.value)} />
      </label>
      <p className="muted small">{t("expiry")}</p>
      {making.isError ? <Problem error={making.error} /> : null}
      <div className="confirm-buttons">
        <button type="button" className="button" onClick={onClose}>
          {t("back")}
        </button>
        <button type="submit" className="button primary" disabled={making.isOff}>
          {t("create")}
        </button>
      </div>
    </form>
  );
}

function Secret({ secret, onClose }: { secret: string; onClose: () => void }) {
  const [copied, setCopied] = useState(false);
  const copy = () => void navigator.clipboard.writeText(secret).then(() => setCopied(true));
  return (
    <div className="confirm">
      <p>{t("secretText")}</p>
      <code className="secret">{secret}</code>
      <div className="confirm-buttons">
        <button type="button" className="button" onClick={copy}>
          {copied ? t("copied") : t("copy")}
        </button>
        <button type="button" className="button primary" onClick={onClose}>
          {t("secretDone")}
        </button>
      </div>
    </div>
  );
}
