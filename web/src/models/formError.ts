import { fieldErrors } from "@/locales/en/fieldErrors";
import { type Values, textOf } from "@/locales/text";

const t = textOf(fieldErrors);

/** What is wrong with one field. `code` is the same as the server's. */
export type FieldError = { field: string; code: string; message: string };

/** A value that its field does not accept. */
export class FieldValueError extends Error {
  constructor(readonly code: string, message: string) {
    super(message);
  }
}

export function words(key: keyof typeof fieldErrors, values?: Values): string {
  return t(key, values);
}

export function refuse(code: string, key: keyof typeof fieldErrors, values?: Values): never {
  throw new FieldValueError(code, words(key, values));
}
