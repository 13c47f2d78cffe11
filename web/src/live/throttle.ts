/** Calls one after the other, with a rest between them. */

/** After a quiet time the first call waits only for those that come with it. */
const MOMENT = 40;
const REST = 400;
/** A call that takes long is followed by a rest of so many times that: what is large does not keep the server busy. */
const TIMES = 4;

export type Throttled = { call: () => void; stop: () => void };

/** However often `call` is called, `act` is called once for what came before it. What fails is not repeated. */
export function throttled(act: () => Promise<unknown>, rest = REST): Throttled {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isBusy = false;
  let isWanted = false;
  let isStopped = false;
  let readyAt = 0;
  async function run(): Promise<void> {
    timer = undefined;
    isBusy = true;
    isWanted = false;
    const began = Date.now();
    await act().catch(() => {});
    const now = Date.now();
    readyAt = now + Math.max(rest, (now - began) * TIMES);
    isBusy = false;
    if (isWanted) call();
  }
  function call(): void {
    isWanted = true;
    if (isBusy || isStopped) return;
    timer ??= setTimeout(() => void run(), Math.max(MOMENT, readyAt - Date.now()));
  }
  return {
    call,
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
