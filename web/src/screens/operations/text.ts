import { operations } from "@/locales/en/operations";
import { textOf } from "@/locales/text";

export const t = textOf(operations);
