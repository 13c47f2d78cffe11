/** What the server has of the document, and how what is edited gets there. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useSession } from "@/app/useSession";
import { useAction } from "@/components/useAction";
import { failureOf } from "@/services/client";
import { type EditedDocument, type Format, NEW, discardDocument, getDocument, saveDocument } from "@/services/documents";
import { keepText, keptText } from "./keptText";
import { type EditedText, useText } from "./useText";

export type Saved = {
  name: string;
  format: Format;
  edited: EditedText;
  server: EditedDocument;
  /** What another person saved since this one was read. */
  theirs: EditedDocument | null;
  isChanged: boolean;
  isRestored: boolean;
  isSaving: boolean;
  error: unknown;
  save: () => void;
  /** Fails if another person has saved since, or it cannot be saved. */
  saveFirst: () => Promise<unknown>;
  overwrite: () => void;
  /** Back to what the server has. */
  revert: (to: EditedDocument) => void;
  /** What was saved and is deployed is no draft any more. */
  setDeployed: () => Promise<void>;
};

export function useSaved(given: EditedDocument): Saved {
  const { tenant, person } = useSession();
  const client = useQueryClient();
  const { name, format } = given;
  const [kept] = useState(() => {
    const found = keptText(tenant, person, name);
    return found !== null && found.text !== given.source ? found : null;
  });
  const edited = useText(kept?.text ?? given.source, format);
  const [server, setServer] = useState(given);
  // Of what the kept text was made from: if another person has saved since, the first save says so.
  const [etag, setEtag] = useState(kept?.etag ?? given.etag);
  const [isRestored, setRestored] = useState(kept !== null);
  const [theirs, setTheirs] = useState<EditedDocument | null>(null);
  // A new document is not saved anywhere yet.
  const isChanged = edited.text !== server.source || server.etag === NEW;
  useEffect(() => keepText(tenant, person, name, isChanged ? { text: edited.text, etag } : null), [tenant, person, name, edited.text, etag, isChanged]);
  const accept = (found: EditedDocument) => {
    setServer(found);
    setEtag(found.etag);
    setTheirs(null);
    setRestored(false);
    void client.invalidateQueries({ queryKey: ["documents", "list"] });
  };
  const saving = useAction({
    mutationFn: ({ text, match }: { text: string; match: string }) => saveDocument(name, text, format, match),
    onSuccess: accept,
    onError: async (error) => {
      if (failureOf(error).kind === "changed") setTheirs(await getDocument(name));
    },
  });
  const isConflict = saving.isError && failureOf(saving.error).kind === "changed";
  return {
    name,
    format,
    edited,
    server,
    theirs,
    isChanged,
    isRestored,
    isSaving: saving.isPending,
    error: saving.isError && !isConflict ? saving.error : null,
    save: () => saving.mutate({ text: edited.text, match: etag }),
    saveFirst: () => saving.mutateAsync({ text: edited.text, match: etag }),
    overwrite: () => theirs && saving.mutate({ text: edited.text, match: theirs.etag }),
    revert: (to) => {
      // Undo brings back what was discarded: the server has it no more.
      edited.setText(to.source);
      accept(to);
    },
    setDeployed: async () => {
      const found = await getDocument(name);
      if (found === null) return;
      if (!found.savedBy || found.source !== edited.text) return accept(found);
      await discardDocument(name, found.etag);
      accept((await getDocument(name)) ?? found);
    },
  };
}
