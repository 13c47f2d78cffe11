import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useSession } from "@/app/useSession";
import { addressOf } from "@/services/client";
import { type Hold, claim, release } from "@/services/holds";
import { word } from "@/words";
import { t } from "./text";

export function HoldActions({ hold, onChanged }: { hold: Hold; onChanged: (hold: Hold) => void }) {
  const { person } = useSession();
  const client = useQueryClient();
  const [copied, setCopied] = useState(false);
  const isMine = hold.claimedBy === person;
  const claiming = useMutation({
    mutationFn: () => (isMine ? release(hold.id) : claim(hold.id)),
    onSuccess: (changed) => {
      client.setQueryData(["hold", hold.id], changed);
      onChanged(changed);
    },
  });
  const copy = () => {
    void navigator.clipboard.writeText(window.location.origin + addressOf(`/holds/${hold.id}`)).then(() => setCopied(true));
  };
  return (
    <span className="hold-actions">
      {hold.status === "pending" ? (
        <button type="button" className="button quiet" disabled={claiming.isPending} onClick={() => claiming.mutate()}>
          {isMine ? word("release") : word("claim")}
        </button>
      ) : null}
      <button type="button" className="button quiet" onClick={copy}>
        {copied ? t("copied") : word("copyLink")}
      </button>
    </span>
  );
}
