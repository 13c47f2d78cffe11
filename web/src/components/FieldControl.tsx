/** The control of each kind of field: elements of the browser, which bring their keys and their speech. */
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { writeJson } from "@/models/json";
import type { Section } from "@/models/form";
import { plainText, valueText } from "@/models/values";
import { FieldChoices, FieldSelect, FieldYesNo } from "./FieldChoices";
import { FieldFile } from "./FieldFile";
import { FieldMoney } from "./FieldMoney";
import { FieldMoment } from "./FieldMoment";
import { Markdown } from "./LazyMarkdown";
import { TableField } from "./TableField";

const t = textOf(messages);

/** Stores a file and gives the reference to it. `place`: the field, or `table.column`. */
export type Upload = (place: string, file: File) => Promise<unknown>;

export type ControlProps = {
  id: string;
  section: Section;
  value: unknown;
  notes: string;
  error: string;
  required: boolean;
  readonly: boolean;
  /** Where no label stands beside it: in a cell of a table. */
  label?: string | undefined;
  place?: string;
  onUpload?: Upload | undefined;
  onChange: (value: unknown) => void;
};

/** What a person decides on is in view: a field grows with its text. */
const MOST_LINES = 40;
/** Characters in a line of a narrow field. */
const NARROW = 36;
const GROUPS = new Set(["radio", "multiselect", "boolean", "table"]);
const AREAS = new Set(["textarea", "markdown"]);
const CODES = new Set(["code", "diff", "json"]);
const INPUTS: Record<string, string> = { email: "email", url: "url", phone: "tel", date: "date", time: "time" };
const MODES: Record<string, "decimal" | "numeric"> = { number: "decimal", integer: "numeric", percent: "decimal", currency: "decimal" };

export function isGroup(kind: string): boolean {
  return GROUPS.has(kind);
}

export function FieldControl(props: ControlProps) {
  const { section, value, readonly } = props;
  if (readonly) return <Fixed section={section} value={value} />;
  if (section.kind === "select") return <FieldSelect {...props} />;
  if (section.kind === "radio" || section.kind === "multiselect") return <FieldChoices {...props} />;
  if (section.kind === "boolean") return <FieldYesNo {...props} />;
  if (section.kind === "table") return <TableField {...props} />;
  if (section.kind === "file") return <FieldFile {...props} />;
  if (section.kind === "datetime") return <FieldMoment {...props} />;
  if (section.kind === "currency" && !section.currency) return <FieldMoney {...props} />;
  return (
    <>
      <Text {...props} />
      <Hidden value={value} />
    </>
  );
}

/** What a field has in it where its look misleads. */
function Hidden({ value }: { value: unknown }) {
  const text = typeof value === "string" ? plainText(value) : "";
  return text === "" || text === value ? null : <p className="late small">{t("hiddenCharacters", { text })}</p>;
}

function Fixed({ section, value }: { section: Section; value: unknown }) {
  if (section.kind === "markdown") return <div className="fixed"><Markdown text={plainText(fieldText(value))} /></div>;
  return <output className="fixed">{plainText(section.kind === "json" ? jsonText(value) : valueText(value))}</output>;
}

export function common({ id, notes, error, required, label }: ControlProps) {
  return {
    id, "aria-describedby": notes || undefined, "aria-invalid": error !== "" || undefined,
    "aria-required": required || undefined, "aria-label": label,
  };
}

function Text(props: ControlProps) {
  const { section, value, label, onChange } = props;
  const shown = section.kind === "json" ? jsonText(value) : fieldText(value);
  const isCell = label !== undefined;
  if (!isCell && (AREAS.has(section.kind) || CODES.has(section.kind))) {
    const lines = lineCount(shown);
    return (
      <>
        <textarea
          {...common(props)}
          className={CODES.has(section.kind) ? "code" : undefined}
          rows={Math.min(MOST_LINES, Math.max(3, lines))}
          spellCheck={!CODES.has(section.kind)}
          value={shown}
          onChange={(event) => onChange(event.target.value)}
        />
        {lines > MOST_LINES ? <p className="late small">{t("notAllInView", { count: lines })}</p> : null}
      </>
    );
  }
  return (
    <input
      {...common(props)}
      type={INPUTS[section.kind] ?? "text"}
      inputMode={MODES[section.kind]}
      autoComplete="off"
      value={shown}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}

/** With those that are broken where the field ends. */
function lineCount(text: string): number {
  return text.split("\n").reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / NARROW)), 0);
}

export function fieldText(value: unknown): string {
  return value === undefined || value === null ? "" : typeof value === "string" ? value : valueText(value);
}

function jsonText(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : writeJson(value, 2);
}
