/** The keys of the app. What `?` lists and what a key does come from the same table. */

export type Binding = { keys: string; group: string; label: string };

/** `g i` is two keys, one after the other. */
export const SEQUENCE_MS = 1000;

export function keyOf(event: { key: string; ctrlKey: boolean; metaKey: boolean; altKey: boolean; shiftKey: boolean }): string {
  const letter = event.key.length === 1 ? event.key : event.key;
  const command = event.ctrlKey || event.metaKey ? "Mod+" : "";
  const alt = event.altKey ? "Alt+" : "";
  const shift = event.shiftKey && event.key.length > 1 ? "Shift+" : "";
  return `${command}${alt}${shift}${letter}`;
}

export type Matcher = { press: (key: string, at: number) => string | null };

/** Which binding a key completes. Between the keys of a sequence at most a second passes. */
export function matcherOf(bindings: readonly string[]): Matcher {
  let first = "";
  let since = 0;
  return {
    press(key, at) {
      const both = at - since <= SEQUENCE_MS && first ? `${first} ${key}` : "";
      first = "";
      if (both && bindings.includes(both)) return both;
      if (bindings.some((each) => each.startsWith(`${key} `))) {
        first = key;
        since = at;
      }
      return bindings.includes(key) ? key : null;
    },
  };
}

/** Single letters never fire while somebody types. */
export function isTyping(target: { tagName?: string; type?: string; isContentEditable?: boolean } | null): boolean {
  if (!target) return false;
  if (target.isContentEditable) return true;
  const tag = target.tagName?.toLowerCase();
  if (tag === "textarea" || tag === "select") return true;
  return tag === "input" && !["checkbox", "radio", "button", "submit"].includes(target.type ?? "text");
}
