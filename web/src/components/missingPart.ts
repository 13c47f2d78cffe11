/** Parts of the app that are loaded later, and could not be loaded. */
import { isReachable } from "@/services/live";

const missing = new WeakSet<object>();

/** `vite:preloadError`. `gone`: the server answers, so it has another release. */
export function noteMissingPart(event: Event & { payload: Error }, gone: () => void): void {
  missing.add(event.payload);
  // The router knows these errors by their texts and loads the page anew at once: if the server is away, nothing is left of it.
  event.payload.message = `A part of the page was not loaded: ${event.payload.message}`;
  void isReachable().then((answers) => answers && gone());
}

export function isMissingPart(error: unknown): boolean {
  return typeof error === "object" && error !== null && missing.has(error);
}
