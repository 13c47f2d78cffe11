/** The fields that are wrong, and the way to the first of them. */
import type { Form } from "@/models/form";
import { errorsByField } from "@/models/typed";
import type { Failure } from "@/services/client";

/** Errors of the server at their fields; the one about a missing comment has no list. */
export function faultsOf(form: Form, failure: Failure): Record<string, string> {
  const field = failure.facts["field"];
  if (failure.errors.length === 0 && typeof field === "string") return { [field]: failure.title };
  return errorsByField(form, failure.errors);
}

export function focusField(field: string | undefined): void {
  if (field === undefined) return;
  const found = document.querySelector(`[data-field="${CSS.escape(field)}"]`);
  found?.querySelector<HTMLElement>("input, select, textarea")?.focus();
}
