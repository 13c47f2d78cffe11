import { inbox } from "@/locales/en/inbox";
import { textOf } from "@/locales/text";

export const t = textOf(inbox);
