import { useState } from "react";
import { Icon } from "./Icon";

type SearchProps = { id: string; q: string; label: string; example: string; onSearch: (q: string) => void };

/** Searches with Enter; emptied, at once. Give it a key of the search, so that Back shows the old one. */
export function SearchBox({ id, q, label, example, onSearch }: SearchProps) {
  const [text, setText] = useState(q);
  return (
    <search className="search">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onSearch(text.trim());
        }}
      >
        <Icon name="search" />
        <input
          id={id}
          type="search"
          aria-label={label}
          placeholder={example}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            if (event.target.value === "" && q) onSearch("");
          }}
        />
      </form>
    </search>
  );
}
