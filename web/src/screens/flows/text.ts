import { flows } from "@/locales/en/flows";
import { textOf } from "@/locales/text";

export const t = textOf(flows);
