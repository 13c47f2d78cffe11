import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Moment } from "@/components/Moment";
import { StatusBadge } from "@/components/StatusBadge";
import { type Token, listTokens, revokeToken } from "@/services/operations";
import { Action } from "./Action";
import { NewToken } from "./NewToken";
import { Answered, type Column, None, Table } from "./Panel";
import { tokenWord } from "./panels";
import { t } from "./text";

const COLUMNS: Column<Token>[] = [
  { label: t("subject"), cell: (row) => row.subject },
  { label: t("state"), cell: (row) => <StatusBadge shown={tokenWord(row)} /> },
  { label: t("roles"), cell: (row) => row.roles.join(", ") || <None /> },
  { label: t("note"), cell: (row) => (row.note ? <span className="wrapped">{row.note}</span> : <None />) },
  { label: t("created"), cell: (row) => <Moment at={row.createdAt} /> },
  { label: t("expires"), cell: (row) => (row.expiresAt ? <Moment at={row.expiresAt} /> : t("never")) },
  { label: t("used"), cell: (row) => (row.lastUsedAt ? <Moment at={row.lastUsedAt} /> : <None />) },
];

export function Tokens() {
  const [isNew, setNew] = useState(false);
  const tokens = useQuery({ queryKey: ["operations", "tokens"], queryFn: listTokens });
  return (
    <>
      <div className="panel-bar">
        <button type="button" className="button primary" onClick={() => setNew(true)}>
          {t("newToken")}
        </button>
      </div>
      <Answered query={tokens}>
        {(rows) => (
          <Table
            label={t("tokens")}
            rows={rows}
            columns={COLUMNS}
            keyOf={(row) => row.id}
            empty={t("noTokens")}
            hint={t("noTokensHint")}
            Actions={Revoke}
          />
        )}
      </Answered>
      {isNew ? <NewToken onClose={() => setNew(false)} /> : null}
    </>
  );
}

function Revoke({ row: token }: { row: Token }) {
  if (token.status !== "active") return null;
  return (
    <Action
      label={t("revoke")}
      of={token.subject}
      title={t("revokeTitle", { name: token.subject })}
      text={t("revokeText")}
      isDanger
      act={() => revokeToken(token.id)}
      done={t("revokeDone", { name: token.subject })}
    />
  );
}
