/** For what is asked for by every step of a slider: those that are passed by are not asked for. */

const REST = 150;

/** One for each kind of question. The first of them is not kept waiting. Rejects when the question is given up. */
export function settling(): (signal: AbortSignal) => Promise<void> {
  let last = Number.NEGATIVE_INFINITY;
  return async (signal) => {
    const now = Date.now();
    const isQuick = now - last < REST;
    last = now;
    if (!isQuick) return;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, REST);
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      });
    });
  };
}
