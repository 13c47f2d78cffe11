import { useRef } from "react";
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { isRecord } from "@/models/form";
import { type ControlProps, FieldControl } from "./FieldControl";
import { useKeepFocus } from "./useKeepFocus";

const t = textOf(messages);

/** Rows of small fields. Rows without a value are left out of the answer. */
export function TableField({ id, section, value, error, onUpload, onChange }: ControlProps) {
  const rows = (Array.isArray(value) ? value : []).filter(isRecord);
  const change = (place: number, field: string, given: unknown) =>
    onChange(rows.map((row, each) => (each === place ? { ...row, [field]: given } : row)));
  const table = useRef<HTMLDivElement>(null);
  const keep = useKeepFocus(() => table.current?.querySelector<HTMLElement>("tbody tr:last-child button") ?? table.current?.querySelector<HTMLElement>(".add-row"));
  const add = () => {
    onChange([...rows, {}]);
    requestAnimationFrame(() => table.current?.querySelector<HTMLElement>("tbody tr:last-child :is(input, select, textarea)")?.focus());
  };
  return (
    <div ref={table} className="table-field" {...keep}>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys */}
      <div className="table-scroll" tabIndex={0}>
        <table className="grid">
          <thead>
            <tr>
              {section.columns.map((column) => (
                <th key={column.field} scope="col">
                  {column.label}
                  {column.currency ? ` (${column.currency})` : ""}
                  {column.raw["required"] ? <span className="muted"> {t("required")}</span> : null}
                </th>
              ))}
              <th>
                <span className="away">{t("remove")}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, place) => (
              <tr key={place}>
                {section.columns.map((column) => (
                  <td key={column.field}>
                    <FieldControl
                      id={`${id}-${place}-${column.field}`}
                      section={column}
                      value={row[column.field]}
                      notes=""
                      error={error.startsWith(`[${place}].${column.field} `) ? error : ""}
                      required={column.raw["required"] === true}
                      readonly={column.raw["readonly"] === true}
                      label={t("cell", { column: column.label, row: place + 1 })}
                      place={`${section.field}.${column.field}`}
                      onUpload={onUpload}
                      onChange={(given) => change(place, column.field, given)}
                    />
                  </td>
                ))}
                <td>
                  <button
                    type="button"
                    className="button quiet"
                    aria-label={t("removeRow", { row: place + 1 })}
                    onClick={() => onChange(rows.filter((_, each) => each !== place))}
                  >
                    {"×"}
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <button type="button" className="button quiet add-row" onClick={add}>
        {t("addRow")}
      </button>
    </div>
  );
}
