/** Keys of the part of the page that is mounted. `?` lists exactly what is bound. */
import { useEffect, useEffectEvent, useSyncExternalStore } from "react";
import { type Binding, isLetters, isTyping, keyOf, matcherOf, typingIn } from "@/models/keys";

/** Without `run` it is only listed: the part that has the focus answers it itself. `whileTyping`: also in a field; a
 * selector names the form whose fields are meant. */
export type BoundKey = Binding & { run?: () => void; whileTyping?: boolean | string };

export const PALETTE_KEYS = "Mod+k";
let bound: readonly BoundKey[][] = [];
const watchers = new Set<() => void>();

let lettersOn = true;

/** Some people speak or type so that single letters would start actions by chance. */
export function useLetters(on: boolean): void {
  useEffect(() => {
    lettersOn = on;
  }, [on]);
}

export function areLettersOn(): boolean {
  return lettersOn;
}

function change(next: readonly BoundKey[][]): void {
  bound = next;
  for (const listener of watchers) listener();
}

/** The innermost part that binds a key gets it. */
export function useKeys(keys: BoundKey[]): void {
  const run = useEffectEvent((place: number) => keys[place]?.run?.());
  // Bound anew only if the table changes, not with each rendering. Functions are not part of the text.
  const table = JSON.stringify(keys.map((each) => ({ ...each, isListed: each.run === undefined })));
  useEffect(() => {
    const bindings = JSON.parse(table) as (Omit<BoundKey, "run"> & { isListed: boolean })[];
    const own = bindings.map(({ isListed, ...each }, place) => (isListed ? each : { ...each, run: () => run(place) }));
    change([...bound, own]);
    return () => change(bound.filter((each) => each !== own));
  }, [table]);
}

export function useBoundKeys(): BoundKey[] {
  return useSyncExternalStore(
    (listener) => {
      watchers.add(listener);
      return () => watchers.delete(listener);
    },
    () => bound,
  ).flat();
}

function isMeant({ whileTyping = false }: BoundKey, target: HTMLElement): boolean {
  return typeof whileTyping === "string" ? target.closest(whileTyping) !== null : whileTyping;
}

/** Ctrl+Enter sends the form that the field is in, and Escape leaves the field: the letters are keys again. */
function typedKey(event: KeyboardEvent, target: HTMLElement): void {
  const meant = target.closest("[role=dialog]") ? null : typingIn(keyOf(event), target);
  if (meant === null) return;
  event.preventDefault();
  if (meant === "send") return target.closest("form")?.requestSubmit();
  const part = target.closest("[data-part]") ?? document;
  const rest = part.querySelector<HTMLElement>("[data-rest]") ?? document.querySelector<HTMLElement>("[data-rest]");
  if (rest) rest.focus();
  else target.blur();
}

/** Once, by the shell. */
export function useKeyboard(): void {
  useEffect(() => {
    const matcher = matcherOf(() => bound.flat().flatMap((each) => (each.run ? [each.keys] : [])));
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || event.repeat) return;
      if (document.querySelector("[role=dialog]") && event.key !== "Escape") return;
      const target = event.target as HTMLElement;
      const name = matcher.press(keyOf(event), event.timeStamp);
      const found = name === null ? undefined : bound.toReversed().flat().find((each) => each.run && each.keys === name);
      if (isTyping(target) && !(found && isMeant(found, target))) return typedKey(event, target);
      if (!found) return;
      if (!lettersOn && isLetters(found.keys)) return;
      // On a button or a link, Enter does what it says there.
      if (name === "Enter" && (event.target as HTMLElement).closest("a, button, summary")) return;
      event.preventDefault();
      found.run?.();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
}
