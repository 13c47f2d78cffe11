/** News, collected for a moment: many of them are one question to the server, and the last of each kind counts. */

/** After a quiet time the first of them wait only for those that come with them. */
const MOMENT = 40;
const REST = 200;
const MOST_AT_ONCE = 100;

export type Batch<T> = { add: (news: T) => void; stop: () => void };

/** One batch after the other. What fails is not repeated: after a lost connection everything is read again. */
export function batched<T>(nameOf: (news: T) => string, act: (news: T[]) => Promise<void>): Batch<T> {
  const waiting = new Map<string, T>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let readyAt = 0;
  async function flush(): Promise<void> {
    const taken = [...waiting].slice(0, MOST_AT_ONCE);
    for (const [name] of taken) waiting.delete(name);
    await act(taken.map(([, news]) => news)).catch(() => {});
    timer = undefined;
    readyAt = Date.now() + REST;
    if (waiting.size > 0) schedule();
  }
  function schedule(): void {
    timer ??= setTimeout(() => void flush(), Math.max(MOMENT, readyAt - Date.now()));
  }
  return {
    add(news) {
      waiting.set(nameOf(news), news);
      schedule();
    },
    stop() {
      waiting.clear();
      clearTimeout(timer);
    },
  };
}
