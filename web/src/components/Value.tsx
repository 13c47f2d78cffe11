/** Any value, readable: texts, tables of flat rows, nested values as a list. Large ones are folded. */
import { useState } from "react";
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { isRecord, labelOf } from "@/models/form";
import { isRows, valueText } from "@/models/values";
import "./values.css";

const t = textOf(messages);
const LONG = 4096;
const LINES = 20;
const DEEPEST = 6;

type ValueProps = { value: unknown; depth?: number; rawNames?: boolean };

/** `rawNames`: names as they are stored, not as labels. */
export function Value({ value, depth = 0, rawNames = false }: ValueProps) {
  if (isRows(value)) return <Rows rows={value} />;
  if (depth < DEEPEST && Array.isArray(value) && value.length > 0) {
    return (
      <ul className="value-list">
        {value.slice(0, 200).map((each, place) => (
          <li key={place}>
            <Value value={each} depth={depth + 1} rawNames={rawNames} />
          </li>
        ))}
      </ul>
    );
  }
  if (depth < DEEPEST && isRecord(value) && Object.keys(value).length > 0) {
    return <Facts value={value} depth={depth + 1} rawNames={rawNames} />;
  }
  return <Text text={valueText(value)} />;
}

type FactsProps = { value: Record<string, unknown>; depth?: number; rawNames?: boolean };

export function Facts({ value, depth = 0, rawNames = false }: FactsProps) {
  return (
    <dl className="facts">
      {Object.entries(value).map(([name, each]) => (
        <div key={name}>
          <dt className={rawNames ? "code" : undefined}>{rawNames ? name : labelOf(name)}</dt>
          <dd>
            <Value value={each} depth={depth} rawNames={rawNames} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Rows({ rows }: { rows: Record<string, unknown>[] }) {
  const names = Object.keys(rows[0] ?? {});
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
    <div className="table-scroll" tabIndex={0}>
      <table className="values">
        <thead>
          <tr>
            {names.map((name) => (
              <th key={name} scope="col">
                {labelOf(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, place) => (
            <tr key={place}>
              {names.map((name) => (
                <td key={name} className={typeof row[name] === "number" ? "number" : undefined}>
                  {valueText(row[name])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Text({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  const isLong = text.length > LONG || text.split("\n", LINES + 1).length > LINES;
  if (!isLong) return <span className="prose">{text}</span>;
  const shown = open ? text : text.split("\n").slice(0, LINES).join("\n").slice(0, LONG);
  return (
    <span className="prose">
      {shown}
      {open ? "" : "… "}
      <button type="button" className="link" onClick={() => setOpen(!open)}>
        {open ? t("showLess") : t("showAll", { size: sizeText(text.length) })}
      </button>
    </span>
  );
}

function sizeText(length: number): string {
  return length < 1024 ? `${length} B` : `${Math.round(length / 1024)} KiB`;
}
