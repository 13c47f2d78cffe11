import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { isRecord } from "@/models/form";
import { type ControlProps, common, fieldText } from "./FieldControl";

const t = textOf(messages);

/** An amount and its currency, where the form does not fix the currency. */
export function FieldMoney(props: ControlProps) {
  const { value, label, onChange } = props;
  const money = isRecord(value) ? value : { amount: value, currency: "" };
  return (
    <div className="pair">
      <input
        {...common(props)}
        inputMode="decimal"
        autoComplete="off"
        value={fieldText(money["amount"])}
        onChange={(event) => onChange({ ...money, amount: event.target.value })}
      />
      <input
        aria-label={label ? `${label}, ${t("currency")}` : t("currency")}
        maxLength={3}
        placeholder={t("currency")}
        autoComplete="off"
        value={fieldText(money["currency"])}
        onChange={(event) => onChange({ ...money, currency: event.target.value.toUpperCase() })}
      />
    </div>
  );
}
