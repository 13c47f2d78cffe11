/** Any value, readable: texts, tables of flat rows, nested values as a list. Large ones are folded. */
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { isRecord, isRows, labelOf, plainText, valueText } from "@/models/values";
import { type ReactNode, useState } from "react";
import { Folded } from "./Folded";
import "./values.css";

const t = textOf(messages);
const DEEPEST = 6;
const STEP = 100;

type ValueProps = { value: unknown; depth?: number; rawNames?: boolean };

/** `rawNames`: names as they are stored, not as labels. */
export function Value({ value, depth = 0, rawNames = false }: ValueProps) {
  if (isRows(value)) return <Rows rows={value} />;
  if (depth < DEEPEST && Array.isArray(value) && value.length > 0) {
    return (
      <List values={value} depth={depth} rawNames={rawNames} />
    );
  }
  if (depth < DEEPEST && isRecord(value) && Object.keys(value).length > 0) {
    return <Facts value={value} depth={depth + 1} rawNames={rawNames} />;
  }
  return <Leaf value={value} />;
}

/** A text without a letter is named: nothing at all would look like a fault of the page. */
export function Leaf({ value }: { value: unknown }) {
  return value === "" ? <span className="muted small">{t("empty")}</span> : <Text text={valueText(value)} />;
}

/** So many of them are in the page, and a button for the next: a huge value leaves the page usable. */
function useFirst(all: number): { most: number; more: ReactNode } {
  const [most, setMost] = useState(STEP);
  if (all <= most) return { most, more: null };
  const count = Math.min(STEP, all - most);
  const more = (
    <button type="button" className="link" onClick={() => setMost(most + STEP)}>
      {t("showMore", { count, left: all - most })}
    </button>
  );
  return { most, more };
}

const MOST = 200;

/** A long list is cut, and says how much is left out. */
function List({ values, depth, rawNames }: { values: readonly unknown[]; depth: number; rawNames: boolean }) {
  const [shown, setShown] = useState(MOST);
  const left = values.length - shown;
  return (
    <>
      <ul className="value-list">
        {values.slice(0, shown).map((each, place) => (
          <li key={place}>
            <Value value={each} depth={depth + 1} rawNames={rawNames} />
          </li>
        ))}
      </ul>
      {left > 0 ? (
        <p>
          <strong>{t("moreEntries", { count: left })}</strong>{" "}
          <button type="button" className="link" onClick={() => setShown(shown + 5 * MOST)}>{t("showMoreEntries")}</button>
        </p>
      ) : null}
    </>
  );
}

type FactsProps = { value: Record<string, unknown>; depth?: number; rawNames?: boolean };

export function Facts({ value, depth = 0, rawNames = false }: FactsProps) {
  const all = Object.entries(value);
  const { most, more } = useFirst(all.length);
  return (
    <>
      <dl className="facts">
        {all.slice(0, most).map(([name, each]) => (
          <div key={name}>
            <dt className={rawNames ? "code" : undefined}>{plainText(rawNames ? name : labelOf(name))}</dt>
            <dd>
              <Value value={each} depth={depth} rawNames={rawNames} />
            </dd>
          </div>
        ))}
      </dl>
      {more}
    </>
  );
}

function Rows({ rows }: { rows: Record<string, unknown>[] }) {
  const names = Object.keys(rows[0] ?? {});
  const { most, more } = useFirst(rows.length);
  return (
    <>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys */}
      <div className="table-scroll" tabIndex={0}>
        <table className="values">
          <thead>
            <tr>
              {names.map((name) => (
                <th key={name} scope="col">
                  {plainText(labelOf(name))}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, most).map((row, place) => (
              <tr key={place}>
                {names.map((name) => (
                  <td key={name} className={["number", "bigint"].includes(typeof row[name]) ? "number" : undefined}>
                    <Text text={valueText(row[name])} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {more}
    </>
  );
}

/** `most`: so many bytes are shown whole. */
export function Text({ text, most }: { text: string; most?: number }) {
  return <span className="prose"><Folded text={plainText(text)} {...(most === undefined ? {} : { most })}>{(shown) => shown}</Folded></span>;
}
