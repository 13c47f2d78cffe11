import { useState } from "react";
import { search as messages } from "@/locales/en/search";
import { textOf } from "@/locales/text";
import { Icon } from "./Icon";

const t = textOf(messages);

type SearchProps = {
  id: string;
  q: string;
  label: string;
  example: string;
  /** Says what is wrong with a search; it is not searched for then. */
  problemOf?: (q: string) => string;
  /** The search that was meant, where that can be told. */
  meantBy?: (q: string) => string;
  onSearch: (q: string) => void;
};

/** Searches with Enter; emptied, at once. Give it a key of the search, so that Back shows the old one. */
export function SearchBox({ id, q, label, example, problemOf, meantBy, onSearch }: SearchProps) {
  const [text, setText] = useState(q);
  const [problem, setProblem] = useState(() => problemOf?.(q) ?? "");
  const meant = problem ? (meantBy?.(text.trim()) ?? "") : "";
  return (
    <search className="search">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const found = problemOf?.(text.trim()) ?? "";
          setProblem(found);
          if (!found) onSearch(text.trim());
        }}
      >
        <Icon name="search" />
        <input
          id={id}
          type="search"
          aria-label={label}
          placeholder={example}
          value={text}
          aria-invalid={problem ? true : undefined}
          aria-describedby={problem ? `${id}-problem` : undefined}
          onChange={(event) => {
            setText(event.target.value);
            setProblem("");
            if (event.target.value === "" && q) onSearch("");
          }}
        />
      </form>
      {problem ? <p id={`${id}-problem`} role="alert" className="field-error small search-problem">{problem}</p> : null}
      {meant ? <button type="button" className="link small search-meant" onClick={() => onSearch(meant)}>{t("meant", { q: meant })}</button> : null}
    </search>
  );
}
