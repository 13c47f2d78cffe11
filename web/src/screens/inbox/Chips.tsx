/** What a search asks for, word by word. Each can be taken out. */
import { search } from "@/locales/en/search";
import { textOf } from "@/locales/text";
import { withoutText, withoutWord } from "@/models/query";
import type { HoldQuery } from "@/models/queryHolds";

const t = textOf(search);
type ChipsProps = { q: string; read: HoldQuery; onSearch: (q: string) => void };

export function Chips({ q, read, onSearch }: ChipsProps) {
  const words = [...new Set(read.words)];
  if (words.length === 0 && !read.text) return null;
  return (
    <ul className="chips" aria-label={t("chips")}>
      {words.map((word) => <Chip key={word} label={word} onDrop={() => onSearch(withoutWord(q, word))} />)}
      {read.text ? <Chip label={t("text", { text: read.text })} onDrop={() => onSearch(withoutText(q, read.words))} /> : null}
    </ul>
  );
}

function Chip({ label, onDrop }: { label: string; onDrop: () => void }) {
  return (
    <li className="chip">
      <span>{label}</span>
      <button type="button" aria-label={t("drop", { word: label })} onClick={onDrop}>
        <span aria-hidden="true">{"×"}</span>
      </button>
    </li>
  );
}
