/** Find a page, a flow, a run or hold by the beginning of its id, or something to do. */
/* oxlint-disable jsx-a11y/prefer-tag-over-role -- no element has groups of rows that a field moves through */
import { useDebouncedValue } from "@mantine/hooks";
import { type KeyboardEvent, useEffect, useId, useState } from "react";
import { Dialog } from "@/components/Dialog";
import { Problem } from "@/components/Problem";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import type { Finding } from "@/models/palette";
import { Keys } from "./Keys";
import "./palette.css";
import { type Choice, useFindings } from "./useFindings";

const t = textOf(shell);
const KINDS: Record<Finding["kind"], string> = { page: t("pages"), flow: t("flows"), run: t("runs"), hold: t("holds"), action: t("actions") };
const PAUSE = 120;

export default function Palette({ onClose }: { onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const text = typed.trim();
  const [asked] = useDebouncedValue(text, PAUSE);
  const [place, setPlace] = useState(0);
  // Enter was pressed before the answer came: the first finding is opened when it does.
  const [isAwaited, setAwaited] = useState(false);
  const { found, isSearching, error, retry } = useFindings(text, asked);
  const id = useId();
  const current = Math.min(place, found.length - 1);
  useEffect(() => {
    document.getElementById(`${id}-${current}`)?.scrollIntoView({ block: "nearest" });
  }, [id, current]);
  const choose = (each: Choice | undefined) => {
    if (each === undefined) return;
    onClose();
    // After the dialog has given the focus back: an action may move it.
    window.setTimeout(each.run);
  };
  useEffect(() => {
    if (isAwaited && !isSearching) choose(found[current]);
  });
  const press = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowDown: current + 1, ArrowUp: current - 1 };
    const next = steps[event.key];
    if (next === undefined && event.key !== "Enter") return;
    event.preventDefault();
    if (next === undefined) return isSearching ? setAwaited(true) : choose(found[current]);
    setAwaited(false);
    setPlace((next + found.length) % Math.max(1, found.length));
  };
  return (
    <Dialog title={t("find")} onClose={onClose} size="lg" className="palette">
      <input
        data-autofocus
        type="text"
        role="combobox"
        aria-label={t("find")}
        aria-expanded={found.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={current >= 0 ? `${id}-${current}` : undefined}
        aria-autocomplete="list"
        placeholder={t("findExample")}
        autoComplete="off"
        spellCheck={false}
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value);
          setAwaited(false);
          setPlace(0);
        }}
        onKeyDown={press}
      />
      <output className="away">{isSearching ? t("loading") : t("foundCount", { count: found.length })}</output>
      {error === null ? null : <Problem error={error} onRetry={retry} />}
      {found.length === 0 && error === null ? <p className="muted">{isSearching ? t("loading") : t("nothingFound", { text })}</p> : null}
      <div id={`${id}-list`} role="listbox" aria-label={t("findings")} className="palette-list">
        {[...new Set(found.map((each) => each.kind))].map((kind) => (
          <div key={kind} role="group" aria-label={KINDS[kind]}>
            <div className="group-title" aria-hidden="true">{KINDS[kind]}</div>
            {found.map((each, at) =>
              each.kind === kind ? (
                // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/interactive-supports-focus -- the keys are the field's
                <div key={each.id} id={`${id}-${at}`} role="option" aria-selected={at === current} className="palette-row" onClick={() => choose(each)} onPointerMove={() => setPlace(at)}>
                  <span className="palette-label">{each.label}</span>
                  {each.hint ? <span className="muted small">{each.hint}</span> : null}
                  {each.keys ? <span className="palette-keys" aria-hidden="true"><Keys keys={each.keys} /></span> : null}
                </div>
              ) : null,
            )}
          </div>
        ))}
      </div>
    </Dialog>
  );
}
