/** A text that may be long: folded with its size, and a file to download where it is huge. */
import { type ReactNode, useState } from "react";
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { foldOf } from "@/models/fold";
import { sizeText } from "@/models/size";

const t = textOf(messages);

/** Texts that the reader has opened stay open while the page is: also where they are shown anew. */
const opened = new Set<string>();

function nameOf(text: string): string {
  return `${text.length} ${text.slice(0, 80)} ${text.slice(-80)}`;
}

export function Folded({ text, most, children }: { text: string; most?: number; children: (shown: string) => ReactNode }) {
  const [open, setOpen] = useState(() => opened.has(nameOf(text)));
  const turn = () => {
    if (open) opened.delete(nameOf(text));
    else opened.add(nameOf(text));
    setOpen(!open);
  };
  const { kind, beginning, bytes } = foldOf(text, most);
  if (kind === "whole") return children(text);
  const size = sizeText(bytes);
  return (
    <>
      {children(open && kind === "folded" ? text : `${beginning}…`)}{" "}
      {kind === "download" ? (
        <button type="button" className="link" onClick={() => download(text)}>{t("download", { size })}</button>
      ) : (
        <button type="button" className="link" aria-expanded={open} onClick={turn}>
          {open ? t("showLess") : t("showAll", { size })}
        </button>
      )}
    </>
  );
}

function download(text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  const link = Object.assign(document.createElement("a"), { href: address, download: "text.txt" });
  link.click();
  // After the browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
