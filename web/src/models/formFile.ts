/** A reference to a file that is stored already. */
import { FieldValueError, refuse, words } from "./formError";
import { isMapping } from "./conditionValues";
import { firstOf, grouped, lengthOf, quoted } from "./pythonText";

export type FileReference = { sha256: string; size: number; name: string; media_type: string };

const LARGEST = 25 * 2 ** 20;
const NAMES = ["media_type", "name", "sha256", "size"];
const UNSEEN = new RegExp(
  "[\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164"
  + "\\ufeff\\uffa0\\ufff0-\\ufffb\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]"
  + "|(?<![^\\x00-\\x7f])[\\u200c\\u200d]|[\\u200c\\u200d](?![^\\x00-\\x7f])",
  "gu",
);

export function largestFile(section: Readonly<Record<string, unknown>>): number {
  return Math.min(typeof section["max_size"] === "number" ? section["max_size"] : LARGEST, LARGEST);
}

export function readFile(section: Readonly<Record<string, unknown>>, value: unknown): unknown {
  if (!isMapping(value)) return refuse("type", "notFile");
  if (Object.keys(value).toSorted().join() !== NAMES.join()) return refuse("type", "fileParts");
  const { sha256, size, name, media_type: media } = value;
  if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)) return refuse("format", "fileDigest");
  const most = largestFile(section);
  if (typeof size !== "number" || !Number.isInteger(size) || size < 0 || size > most) return refuse("size", "fileSize", { most: grouped(most) });
  requireName(name);
  if (typeof media !== "string" || !isAccepted(media, section["accept"])) {
    return refuse("media_type", "fileType", { type: quoted(firstOf(String(media ?? "None"), 100)) });
  }
  return value;
}

/** Not a path, and without characters that make it look like another name. */
function requireName(name: unknown): void {
  // oxlint-disable-next-line no-control-regex -- these are what a name must not have
  if (typeof name !== "string" || !/^[^/\\\x00-\x1f\x7f]+$/.test(name) || lengthOf(name) > 255 || name === "." || name === "..") {
    throw new FieldValueError("format", words("fileName"));
  }
  const shown = visible(name);
  if (shown !== name) refuse("format", "fileInvisible", { name: quoted(shown) });
}

/** With invisible characters by their number. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, (letter) => {
    const code = letter.codePointAt(0)!;
    return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
  });
}

export function isAccepted(media: string, wanted: unknown): boolean {
  const accepted = Array.isArray(wanted) ? wanted.map(String) : [];
  return accepted.length === 0 || accepted.some((each) => media === each || (each.endsWith("/*") && media.startsWith(each.slice(0, -1))));
}
