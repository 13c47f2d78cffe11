/** The parts of a page (`data-part`), which F6 leads through; `data-part="work"` is what the page is for: its graph, timeline or list. */

const REACHED = "a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), summary, [tabindex]";

/** The next one, or the one before; after the last one the first. */
export function focusPart(by: 1 | -1): void {
  const parts = [...document.querySelectorAll<HTMLElement>("[data-part]")].filter((each) => stopIn(each) !== undefined);
  const here = document.activeElement ?? document.body;
  // Between two parts: the one before it counts as left.
  const at = parts.findLastIndex((each) => here !== document.body && (each.contains(here) || (by > 0 && each.compareDocumentPosition(here) === Node.DOCUMENT_POSITION_FOLLOWING)));
  const next = at < 0 && by < 0 ? parts.at(-1) : parts[(at + by + parts.length) % parts.length];
  if (next) stopIn(next)?.focus();
}

export function focusWork(): void {
  const work = document.querySelector<HTMLElement>("[data-part=work]");
  const stop = work === null ? null : stopIn(work);
  (stop ?? document.getElementById("main"))?.focus();
}

/** Where Tab would come to first; a row or a node before the buttons around it. */
function stopIn(part: HTMLElement): HTMLElement | undefined {
  const stops = [...part.querySelectorAll<HTMLElement>(REACHED)].filter((each) => each.tabIndex >= 0 && each.getClientRects().length > 0);
  return stops.find((each) => each.hasAttribute("data-stop")) ?? stops[0];
}
