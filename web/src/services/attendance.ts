/** Whether a person is at the page. A page that is left open asks the server all the time; only what follows an act of its
 * person keeps their session from ending. */
const WITHIN = 60_000;
const ACTS = ["pointerdown", "keydown", "wheel", "touchstart"] as const;
export const UNATTENDED = "Holdfast-Unattended";

type Watched = Pick<EventTarget, "addEventListener">;
type Fetch = typeof globalThis.fetch;

/** `fetch` that marks what is asked a minute or more after the last act. The opening of the page is the first one. */
export function attendedFetch(page: Watched, fetch: Fetch, now: () => number = Date.now): Fetch {
  let last = now();
  for (const act of ACTS) {
    page.addEventListener(act, () => { last = now(); }, { capture: true, passive: true });
  }
  return (address, init) => {
    if (now() - last < WITHIN) return fetch(address, init);
    const headers = new Headers(init?.headers);
    headers.set(UNATTENDED, "1");
    return fetch(address, { ...init, headers });
  };
}
