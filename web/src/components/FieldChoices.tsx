/** Fields with options: one of a list, some of them, yes or no. */
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import type { Choice } from "@/models/form";
import { type ControlProps, common, fieldText } from "./FieldControl";

const t = textOf(messages);

export function FieldSelect(props: ControlProps) {
  return <Select {...props} options={props.section.options} chosen={fieldText(props.value)} />;
}

function Select(props: ControlProps & { options: readonly Choice[]; chosen: string }) {
  return (
    <select {...common(props)} value={props.chosen} onChange={(event) => props.onChange(event.target.value)}>
      <option value="">{t("choose")}</option>
      {props.options.map((each) => (
        <option key={each.id} value={each.id}>
          {each.label}
        </option>
      ))}
    </select>
  );
}

/** With radio buttons, or boxes where several can be chosen. */
export function FieldChoices({ id, section, value, label, onChange }: ControlProps) {
  const isMany = section.kind === "multiselect";
  const chosen = Array.isArray(value) ? value.map(String) : [fieldText(value)];
  const toggle = (option: string) => onChange(chosen.includes(option) ? chosen.filter((each) => each !== option) : [...chosen.filter(Boolean), option]);
  const choices = (
    <div className="choices">
      {section.options.map((each) => (
        <label key={each.id} className="choice">
          <input
            type={isMany ? "checkbox" : "radio"}
            name={id}
            checked={chosen.includes(each.id)}
            onChange={() => (isMany ? toggle(each.id) : onChange(each.id))}
          />
          {each.label}
        </label>
      ))}
    </div>
  );
  return label === undefined ? choices : <fieldset aria-label={label}>{choices}</fieldset>;
}

/** Three states: a box that is not ticked could mean no, and also that nobody answered. */
export function FieldYesNo(props: ControlProps) {
  const options = [
    { id: "true", label: t("yes") },
    { id: "false", label: t("no") },
  ];
  const chosen = typeof props.value === "boolean" ? String(props.value) : "";
  const onChange = (given: unknown) => props.onChange(given === "" ? null : given === "true");
  if (props.label !== undefined) return <Select {...props} options={options} chosen={chosen} onChange={onChange} />;
  return <FieldChoices {...props} section={{ ...props.section, options }} value={chosen} onChange={onChange} />;
}
