import { settings } from "@/locales/en/settings";
import { textOf } from "@/locales/text";

export const t = textOf(settings);
