/** The control of each kind of field: elements of the browser, which bring their keys and their speech. */
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { type Section, isRecord } from "@/models/form";
import { valueText } from "@/models/values";
import { TableField } from "./TableField";

const t = textOf(messages);

export type ControlProps = {
  id: string;
  section: Section;
  value: unknown;
  notes: string;
  invalid: boolean;
  required: boolean;
  readonly: boolean;
  onChange: (value: unknown) => void;
};

const GROUPS = new Set(["radio", "multiselect", "boolean", "table"]);
const AREAS = new Set(["textarea", "markdown"]);
const CODES = new Set(["code", "diff", "json"]);
const INPUTS: Record<string, string> = {
  email: "email", url: "url", phone: "tel", date: "date", time: "time", datetime: "datetime-local",
};
const MODES: Record<string, "decimal" | "numeric"> = { number: "decimal", integer: "numeric", percent: "decimal", currency: "decimal" };

export function isGroup(kind: string): boolean {
  return GROUPS.has(kind);
}

export function FieldControl(props: ControlProps) {
  const { section, value, readonly } = props;
  if (readonly) return <output className="fixed">{valueText(value)}</output>;
  if (section.kind === "select") return <Select {...props} />;
  if (section.kind === "radio") return <Choices {...props} options={section.options} />;
  if (section.kind === "boolean") return <YesNo {...props} />;
  if (section.kind === "multiselect") return <Checks {...props} />;
  if (section.kind === "table") return <TableField {...props} />;
  if (section.kind === "file") return <p className="muted small">{t("filesLater")}</p>;
  if (section.kind === "currency" && !section.currency) return <Money {...props} />;
  return <Text {...props} />;
}

function common({ id, notes, invalid, required }: ControlProps) {
  return { id, "aria-describedby": notes || undefined, "aria-invalid": invalid || undefined, "aria-required": required || undefined };
}

function Text(props: ControlProps) {
  const { section, value, onChange } = props;
  const shown = section.kind === "json" ? jsonText(value) : section.kind === "datetime" ? localTime(value) : plainText(value);
  if (AREAS.has(section.kind) || CODES.has(section.kind)) {
    return (
      <textarea
        {...common(props)}
        className={CODES.has(section.kind) ? "code" : undefined}
        rows={Math.min(12, Math.max(3, shown.split("\n").length))}
        maxLength={section.maxLength ?? undefined}
        value={shown}
        onChange={(event) => onChange(event.target.value)}
      />
    );
  }
  return (
    <input
      {...common(props)}
      type={INPUTS[section.kind] ?? "text"}
      inputMode={MODES[section.kind]}
      maxLength={section.maxLength ?? undefined}
      autoComplete="off"
      value={shown}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}

function Select(props: ControlProps) {
  const { section, value, onChange } = props;
  return (
    <select {...common(props)} value={plainText(value)} onChange={(event) => onChange(event.target.value)}>
      <option value="">{t("choose")}</option>
      {section.options.map((each) => (
        <option key={each.id} value={each.id}>
          {each.label}
        </option>
      ))}
    </select>
  );
}

function Choices({ id, options, value, onChange }: ControlProps & { options: { id: string; label: string }[] }) {
  return (
    <div className="choices">
      {options.map((each) => (
        <label key={each.id} className="choice">
          <input type="radio" name={id} checked={value === each.id} onChange={() => onChange(each.id)} />
          {each.label}
        </label>
      ))}
    </div>
  );
}

function YesNo(props: ControlProps) {
  const options = [
    { id: "true", label: t("yes") },
    { id: "false", label: t("no") },
  ];
  const shown = typeof props.value === "boolean" ? String(props.value) : "";
  return <Choices {...props} options={options} value={shown} onChange={(value) => props.onChange(value === "true")} />;
}

function Checks({ section, value, onChange }: ControlProps) {
  const chosen = Array.isArray(value) ? value.map(String) : [];
  const toggle = (id: string) => onChange(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  return (
    <div className="choices">
      {section.options.map((each) => (
        <label key={each.id} className="choice">
          <input type="checkbox" checked={chosen.includes(each.id)} onChange={() => toggle(each.id)} />
          {each.label}
        </label>
      ))}
    </div>
  );
}

function Money(props: ControlProps) {
  const { value, onChange } = props;
  const money = isRecord(value) ? value : { amount: value, currency: "" };
  return (
    <div className="pair">
      <input
        {...common(props)}
        inputMode="decimal"
        value={plainText(money["amount"])}
        onChange={(event) => onChange({ ...money, amount: event.target.value })}
      />
      <input
        aria-label={t("currency")}
        maxLength={3}
        value={plainText(money["currency"])}
        onChange={(event) => onChange({ ...money, currency: event.target.value.toUpperCase() })}
      />
    </div>
  );
}

function plainText(value: unknown): string {
  return value === undefined || value === null ? "" : typeof value === "string" ? value : valueText(value);
}

function jsonText(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** In the reader's zone, as the control wants it. */
function localTime(value: unknown): string {
  const text = plainText(value);
  const at = new Date(text);
  if (text === "" || !/(Z|[+-]\d\d:?\d\d)$/.test(text) || Number.isNaN(at.getTime())) return text;
  const shifted = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}
