import { events } from "@/locales/en/events";
import { runs } from "@/locales/en/runs";
import { textOf } from "@/locales/text";
import { plainText, valueText } from "@/models/values";

export const t = textOf(runs);

/** The beginning of a value in one line of a comparison. */
export function shortText(value: unknown, most: number): string {
  return plainText(valueText(value).slice(0, most)) || t("emptyText");
}

const eventText = textOf(events);

/** The name of an event; of one that only a newer server has, its type in words: `New kind` for `new.kind`. */
export function eventWord(type: string): string {
  if (isEvent(type)) return eventText(type);
  const found = type.replaceAll(/[._]+/g, " ").trim();
  return found.charAt(0).toUpperCase() + found.slice(1);
}

function isEvent(type: string): type is keyof typeof events {
  return Object.hasOwn(events, type);
}
