import { runs } from "@/locales/en/runs";
import { textOf } from "@/locales/text";

export const t = textOf(runs);
