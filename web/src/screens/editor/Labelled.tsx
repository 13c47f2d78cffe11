import type { ReactNode } from "react";

type LabelledProps = { label: string; id: string; help?: string; children: ReactNode };

/** A control with its label above it. */
export function Labelled({ label, id, help, children }: LabelledProps) {
  return (
    <div className="field">
      <label className="field-label" htmlFor={id}>{label}</label>
      {children}
      {help ? <p id={`${id}-help`} className="muted small">{help}</p> : null}
    </div>
  );
}
