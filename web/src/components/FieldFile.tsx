import { useRef, useState } from "react";
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { isRecord } from "@/models/form";
import { largestFile } from "@/models/formFile";
import { sizeText } from "@/models/size";
import { plainText } from "@/models/values";
import { failureOf } from "@/services/client";
import { type ControlProps, common } from "./FieldControl";
import { useKeepFocus } from "./useKeepFocus";

const t = textOf(messages);

/** A file is stored as soon as it is chosen; the answer has a reference to it. */
export function FieldFile(props: ControlProps) {
  const { section, value, place, onUpload, onChange } = props;
  const [state, setState] = useState<{ isSending: boolean; refused: string }>({ isSending: false, refused: "" });
  const chosen = isRecord(value) ? value : null;
  const input = useRef<HTMLInputElement>(null);
  const keep = useKeepFocus(() => input.current);
  // What the browser shows as chosen is what the answer has, and the same file can be chosen again.
  const empty = () => {
    if (input.current) input.current.value = "";
  };
  const refuse = (refused: string) => {
    empty();
    setState({ isSending: false, refused });
  };
  if (!onUpload) return <p className="muted small">{t("filesLater")}</p>;
  const send = async (file: File | undefined) => {
    if (!file || state.isSending) return;
    const most = largestFile(section.raw);
    if (file.size > most) return refuse(t("fileTooLarge", { most: sizeText(most) }));
    setState({ isSending: true, refused: "" });
    try {
      onChange(await onUpload(place ?? section.field, file));
      setState({ isSending: false, refused: "" });
    } catch (error) {
      const failure = failureOf(error);
      refuse(failure.errors.map((each) => each.message).join("; ") || failure.title || t("fileNotSent"));
    }
  };
  return (
    <div className="file-field" {...keep}>
      {chosen ? (
        <p className="file-chosen">
          <span>{plainText(String(chosen["name"]))}</span>
          <span className="muted small">{`${plainText(String(chosen["media_type"]))}, ${sizeText(Number(chosen["size"]))}`}</span>
          <button type="button" className="link" onClick={() => { empty(); onChange(null); }}>{t("removeFile")}</button>
        </p>
      ) : null}
      <input {...common(props)} ref={input} type="file" accept={section.accept.join(",") || undefined} aria-busy={state.isSending}
        onChange={(event) => void send(event.target.files?.[0])} />
      <p className="muted small">{t("fileLimits", { most: sizeText(largestFile(section.raw)), types: section.accept.join(", ") || "any" })}</p>
      <output className="small">{state.isSending ? t("fileSending") : ""}</output>
      {state.refused ? <p className="field-error small" role="alert">{state.refused}</p> : null}
    </div>
  );
}
