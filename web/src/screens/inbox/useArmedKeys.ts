/** While a decision is armed: Enter places it, also on a row of the list; any other key disarms. */
import { useEffect, useEffectEvent } from "react";
import { isTyping } from "@/models/keys";

const NEUTRAL = new Set(["Tab", "Shift", "Control", "Alt", "Meta", "Enter", "Escape"]);

export function useArmedKeys(isArmed: boolean, options: number, onConfirm: () => void, onDisarm: () => void): void {
  const pressed = useEffectEvent((event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    // What an option asks for is typed into its fields; a button is pressed by the space bar.
    if (isTyping(target) || (event.key === " " && target.closest("button"))) return;
    if (event.key === "Enter" && target.closest(".row") && !event.repeat) {
      event.preventDefault();
      onConfirm();
    } else if (!NEUTRAL.has(event.key) && !isOption(event.key, options)) onDisarm();
  });
  useEffect(() => {
    if (!isArmed) return undefined;
    const heard = (event: KeyboardEvent) => pressed(event);
    window.addEventListener("keydown", heard, true);
    return () => window.removeEventListener("keydown", heard, true);
  }, [isArmed]);
}

function isOption(key: string, options: number): boolean {
  return /^[1-9]$/.test(key) && Number(key) <= options;
}
