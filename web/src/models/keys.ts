/** The keys of the app. What `?` lists and what a key does come from the same table. */

export type Binding = { keys: string; group: string; label: string };

/** `g i` is two keys, one after the other. */
export const SEQUENCE_MS = 1000;

export function keyOf(event: { key: string; ctrlKey: boolean; metaKey: boolean; altKey: boolean; shiftKey: boolean }): string {
  const command = event.ctrlKey || event.metaKey ? "Mod+" : "";
  const alt = event.altKey ? "Alt+" : "";
  const shift = event.shiftKey && event.key.length > 1 ? "Shift+" : "";
  return `${command}${alt}${shift}${event.key}`;
}

/** A key of letters alone: off where the person wants no such keys. */
export function isLetters(keys: string): boolean {
  return keys.split(" ").every((key) => key.length === 1);
}

const NAMES: Record<string, string> = { Escape: "Esc", ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→" };

/** As people know the keys of their keyboard: `⌘K` or `Ctrl K`. */
export function shownKeys(keys: string, isMac: boolean): string[] {
  return keys.split(" ").flatMap((key) => {
    const parts = key.split("+").filter(Boolean);
    const last = parts.pop() ?? key;
    const name = NAMES[last] ?? (parts.length > 0 ? last.toUpperCase() : last);
    const before = parts.map((each) => (each === "Mod" ? (isMac ? "⌘" : "Ctrl") : each));
    return [...before, name];
  });
}

export type Matcher = { press: (key: string, at: number) => string | null };

/** Which binding a key completes. Between the keys of a sequence at most a second passes. */
export function matcherOf(bound: () => readonly string[]): Matcher {
  let first = "";
  let since = 0;
  return {
    press(key, at) {
      // Asked each time: a part of the page that appears between the two keys does not end the sequence.
      const bindings = bound();
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

type Field = { tagName?: string; type?: string; value?: string; form?: { className: string } | null };

/** What a key that nothing else on the page answers means in a field of text. Escape empties a search first. */
export function typingIn(key: string, field: Field): "send" | "leave" | null {
  const tag = field.tagName?.toLowerCase();
  if (key === "Mod+Enter") return tag === "textarea" && field.form ? "send" : null;
  if (key !== "Escape" || (tag !== "input" && tag !== "textarea")) return null;
  return field.type === "search" && field.value ? null : "leave";
}

/** Single letters never fire while somebody types. */
export function isTyping(target: { tagName?: string; type?: string; isContentEditable?: boolean } | null): boolean {
  if (!target) return false;
  if (target.isContentEditable) return true;
  const tag = target.tagName?.toLowerCase();
  if (tag === "textarea" || tag === "select") return true;
  return tag === "input" && !["checkbox", "radio", "button", "submit", "range", "file"].includes(target.type ?? "text");
}
