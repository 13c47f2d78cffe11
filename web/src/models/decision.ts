/** How a decision comes about: armed by a digit, placed by Enter, undone for a few seconds. */

export type Armed = { hold: string; version: number; option: string } | null;
export type Shown = { hold: string; version: number; options: readonly string[] };

/** A digit arms the option of that place; anything that is not there disarms. */
export function arm(shown: Shown, digit: number): Armed {
  const option = shown.options[digit - 1];
  return option === undefined ? null : { hold: shown.hold, version: shown.version, option };
}

/** Still armed: only for the very hold and version that was shown when the key was pressed. */
export function stillArmed(armed: Armed, shown: Shown): Armed {
  if (armed === null || armed.hold !== shown.hold || armed.version !== shown.version) return null;
  return shown.options.includes(armed.option) ? armed : null;
}

/** The option whose fields are shown. A change of the hold disarms; the field that a person types into stays. */
export function leaning(armed: Armed, shown: Shown): string | null {
  return armed?.hold === shown.hold && shown.options.includes(armed.option) ? armed.option : null;
}

/** The row after this one, else the one before. */
export function nextOf(ids: readonly string[], current: string): string | null {
  const place = ids.indexOf(current);
  if (place < 0) return ids[0] ?? null;
  return ids[place + 1] ?? ids[place - 1] ?? null;
}

export type Row = { id: string; version: number };

/** The list as it is shown: rows change in place, an older version never replaces a newer one. */
export function merged<R extends Row>(shown: readonly R[], news: R): R[] {
  return shown.map((row) => (row.id === news.id && news.version >= row.version ? news : row));
}
