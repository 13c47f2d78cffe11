/** Texts of a catalogue, as ICU messages. `?locale=pseudo` shows each text longer and accented, `pseudo-rtl` from right to left. */
import { IntlMessageFormat } from "intl-messageformat";

export type Values = Record<string, string | number | boolean | Date | null | undefined>;
const asked = new URLSearchParams(globalThis.location?.search ?? "").get("locale");
export const isPseudo = asked === "pseudo" || asked === "pseudo-rtl";
export const direction = asked === "pseudo-rtl" ? "rtl" : "ltr";
export const language = "en";

export function textOf<C extends Readonly<Record<string, string>>>(catalogue: C) {
  const made = new Map<string, IntlMessageFormat>();
  return (key: keyof C & string, values?: Values): string => {
    let message = made.get(key);
    if (message === undefined) {
      const source = catalogue[key] ?? key;
      message = new IntlMessageFormat(isPseudo ? pseudo(source) : source, language);
      made.set(key, message);
    }
    return String(message.format(values));
  };
}

const ACCENTS: Record<string, string> = { a: "á", e: "é", i: "í", o: "ö", u: "ü", A: "Á", E: "É", O: "Ö", U: "Ü", n: "ñ", c: "ç" };

/** At least 40 % longer. Only what people read: what is inside of one brace is ICU's own. */
export function pseudo(source: string): string {
  let depth = 0;
  let letters = 0;
  const shown = Array.from(source, (letter) => {
    if (letter === "{") depth += 1;
    if (letter === "}") depth -= 1;
    if (depth % 2 !== 0 || letter === "{" || letter === "}") return letter;
    letters += 1;
    return ACCENTS[letter] ?? letter;
  }).join("");
  return `[${shown}${"~".repeat(Math.ceil(letters * 0.4))}]`;
}
