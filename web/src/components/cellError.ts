import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import type { Section } from "@/models/form";

const t = textOf(messages);

/** `[0].pieces is below 1` with the names that the table shows. */
export function cellError(section: Section, error: string): string {
  const [head, place, field] = /^\[(\d+)\]\.(\S+)/.exec(error) ?? [];
  const column = section.columns.find((each) => each.field === field);
  return head && column ? `${t("cell", { column: column.label, row: Number(place) + 1 })}${error.slice(head.length)}` : error;
}
