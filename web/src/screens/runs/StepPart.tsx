/** A part of a step that can be folded. */
import type { ReactNode } from "react";

export function StepPart({ title, open = false, children }: { title: string; open?: boolean; children: ReactNode }) {
  return (
    <details className="step-part" open={open}>
      <summary>{title}</summary>
      <div>{children}</div>
    </details>
  );
}
