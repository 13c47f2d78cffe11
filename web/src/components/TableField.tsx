import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { isRecord } from "@/models/form";
import type { ControlProps } from "./FieldControl";
import { valueText } from "@/models/values";

const t = textOf(messages);

/** Rows of small fields. Rows without a value are left out of the answer. */
export function TableField({ section, value, onChange }: ControlProps) {
  const rows = (Array.isArray(value) ? value : []).filter(isRecord);
  const change = (place: number, field: string, text: string) =>
    onChange(rows.map((row, each) => (each === place ? { ...row, [field]: text } : row)));
  return (
    <div className="table-scroll">
      <table className="grid">
        <thead>
          <tr>
            {section.columns.map((column) => (
              <th key={column.field} scope="col">
                {column.label}
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
                  <input
                    aria-label={t("cell", { column: column.label, row: place + 1 })}
                    value={row[column.field] === undefined || row[column.field] === null ? "" : valueText(row[column.field])}
                    onChange={(event) => change(place, column.field, event.target.value)}
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
      <button type="button" className="button quiet" onClick={() => onChange([...rows, {}])}>
        {t("addRow")}
      </button>
    </div>
  );
}
