import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { localText, momentOf, offsetText } from "@/models/formMoment";
import { type ControlProps, common, fieldText } from "./FieldControl";

const t = textOf(messages);

/** A date and time in the reader's zone. The same moment in UTC stands below: clocks are changed. */
export function FieldMoment(props: ControlProps) {
  const { value, onChange } = props;
  const at = momentOf(fieldText(value));
  return (
    <>
      <input {...common(props)} type="datetime-local" step="1" value={localText(fieldText(value))} onChange={(event) => onChange(event.target.value)} />
      {at ? <p className="muted small">{t("moment", { zone: offsetText(at), utc: at.toISOString().slice(0, 19).replace("T", " ") })}</p> : null}
    </>
  );
}
