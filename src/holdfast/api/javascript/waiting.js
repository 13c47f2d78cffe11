// Time: how long to wait before the next attempt, and waits that a signal ends.

const FIRST = 500;
const MOST = 30_000;

/** Milliseconds before attempt `failures + 1`: twice as long each time, and never in step with others. */
export function backoff(failures, { first = FIRST, most = MOST } = {}) {
  const whole = Math.min(most, first * 2 ** Math.min(failures, 20));
  return whole * (0.5 + Math.random() / 2);
}

/** Rejects with the signal's reason where it is aborted meanwhile. */
export function sleep(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const over = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", over);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", over, { once: true });
  });
}

/** A signal that is aborted with any of the others. `AbortSignal.any` is not yet everywhere. */
export function linked(...signals) {
  const own = new AbortController();
  const watched = signals.filter(Boolean);
  const over = (event) => own.abort(event.target.reason);
  for (const each of watched) {
    if (each.aborted) own.abort(each.reason);
    else each.addEventListener("abort", over, { once: true });
  }
  const release = () => watched.forEach((each) => each.removeEventListener("abort", over));
  return { signal: own.signal, abort: (reason) => own.abort(reason), release };
}

/** The same for what is read later, piece by piece: it stays under the caller's signal as long as anybody reads. */
export function joined(signal) {
  if (!signal || !AbortSignal.any) return { ...linked(signal), release: () => {} };
  const own = new AbortController();
  return { signal: AbortSignal.any([signal, own.signal]), abort: (reason) => own.abort(reason), release: () => {} };
}

/** Rings where nobody called `again` for so long. 0 or Infinity: never. */
export class Watchdog {
  #timer;

  constructor(milliseconds, bark) {
    this.milliseconds = milliseconds;
    this.bark = bark;
  }

  again() {
    this.stop();
    if (this.milliseconds > 0 && Number.isFinite(this.milliseconds)) {
      this.#timer = setTimeout(this.bark, this.milliseconds);
    }
  }

  stop() {
    clearTimeout(this.#timer);
  }
}
