/** A list of small records: options of a question, cases of a router, columns of a table. */
import { useRef } from "react";
import { useKeepFocus } from "@/components/useKeepFocus";
import type { ConfigField } from "@/models/configSchema";
import { type Config, isRecord, without } from "@/models/documentData";
import { labelOf } from "@/models/values";
import { t } from "./text";

type RowsProps = { label: string; fields: ConfigField[]; rows: unknown[]; onChange: (rows: unknown[]) => void };
const FEW = 3;

/** A text is a record with its first field only, and stays a text while it has no other. */
export function RowsField({ label, fields, rows, onChange }: RowsProps) {
  const first = fields[0]?.name ?? "id";
  const shown = fields.filter((each) => each.kind !== "yaml").slice(0, FEW);
  const list = useRef<HTMLFieldSetElement>(null);
  // Of the row that takes the place of one that goes, and at the ends of the list.
  const keep = useKeepFocus(() => list.current?.querySelector<HTMLElement>(".row-fields:last-of-type .row-tools button:enabled") ?? list.current?.querySelector<HTMLElement>(".add-row"));
  const add = () => {
    onChange([...rows, newRow(fields, rows.length, rows.every((each) => !isRecord(each)) && rows.length > 0)]);
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>(".row-fields:last-of-type :is(input, select)")?.focus());
  };
  const recordOf = (row: unknown): Config => (isRecord(row) ? row : { [first]: String(row) });
  const set = (at: number, name: string, value: unknown) => {
    const next = without({ ...recordOf(rows[at]), [name]: value });
    const isText = !isRecord(rows[at]) && Object.keys(next).length === 1;
    onChange(rows.map((each, place) => (place === at ? (isText ? next[first] : next) : each)));
  };
  const move = (at: number, by: number) => {
    const row = rows[at];
    onChange(rows.toSpliced(at, 1).toSpliced(at + by, 0, row));
  };
  return (
    <fieldset ref={list} className="rows-field" {...keep}>
      <legend className="field-label">{label}</legend>
      {rows.map((row, at) => {
        const given = recordOf(row);
        const name = String(given[first] ?? at + 1);
        return (
          <div key={at} className="row-fields">
            {shown.map((each) => (
              <Cell key={each.name} field={each} row={`${name}: `} value={given[each.name]} onChange={(value) => set(at, each.name, value)} />
            ))}
            <span className="row-tools">
              <button type="button" className="button quiet" aria-label={t("up", { name })} disabled={at === 0} onClick={() => move(at, -1)}>↑</button>
              <button type="button" className="button quiet" aria-label={t("down", { name })} disabled={at === rows.length - 1} onClick={() => move(at, 1)}>↓</button>
              <button type="button" className="button quiet" aria-label={t("removeRow", { name })} onClick={() => onChange(rows.toSpliced(at, 1))}>×</button>
            </span>
          </div>
        );
      })}
      <button type="button" className="button quiet add-row" onClick={add}>
        {t("addRow")}
      </button>
    </fieldset>
  );
}

function Cell({ field, row, value, onChange }: { field: ConfigField; row: string; value: unknown; onChange: (value: unknown) => void }) {
  const label = labelOf(field.name);
  if (field.kind === "boolean") return <label className="choice small"><input type="checkbox" checked={value === true} aria-label={row + label} onChange={(event) => onChange(event.target.checked || undefined)} />{label}</label>;
  if (field.kind === "choice") {
    return (
      <select aria-label={row + label} value={String(value ?? field.initial ?? "")} onChange={(event) => onChange(event.target.value || undefined)}>
        {field.choices.map((each) => <option key={each}>{each}</option>)}
      </select>
    );
  }
  return <input aria-label={row + label} placeholder={label} value={String(value ?? "")} onChange={(event) => onChange(event.target.value === "" && !field.isRequired ? undefined : event.target.value)} />;
}

function newRow(fields: ConfigField[], count: number, isText: boolean): unknown {
  const name = `${fields[0]?.name === "id" ? "option" : "item"}_${count + 1}`;
  if (isText) return name;
  return Object.fromEntries(fields.filter((each, at) => at === 0 || each.isRequired).map((each, at) => [each.name, at === 0 ? name : ""]));
}
