/** A text that may be long: folded with its size, and a file to download where it is huge. */
import { type ReactNode, useState } from "react";
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { foldOf } from "@/models/fold";
import { sizeText } from "@/models/size";

const t = textOf(messages);

export function Folded({ text, most, children }: { text: string; most?: number; children: (shown: string) => ReactNode }) {
  const [open, setOpen] = useState(false);
  const { kind, beginning, bytes } = foldOf(text, most);
  if (kind === "whole") return children(text);
  const size = sizeText(bytes);
  return (
    <>
      {children(open && kind === "folded" ? text : `${beginning}…`)}{" "}
      {kind === "download" ? (
        <button type="button" className="link" onClick={() => download(text)}>{t("download", { size })}</button>
      ) : (
        <button type="button" className="link" aria-expanded={open} onClick={() => setOpen(!open)}>
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
