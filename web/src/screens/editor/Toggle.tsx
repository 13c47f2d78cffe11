import { useId } from "react";

type ToggleProps = { label: string; help: string; isOn: boolean; onChange: (isOn: boolean) => void };

export function Toggle({ label, help, isOn, onChange }: ToggleProps) {
  const id = useId();
  return (
    <div className="toggle">
      <input id={id} type="checkbox" checked={isOn} aria-describedby={`${id}-help`} onChange={(event) => onChange(event.target.checked)} />
      <span>
        <label htmlFor={id}>{label}</label>
        <span id={`${id}-help`} className="muted small">{help}</span>
      </span>
    </div>
  );
}
