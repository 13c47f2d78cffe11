import { editor } from "@/locales/en/editor";
import { textOf } from "@/locales/text";

export const t = textOf(editor);
