/** Many changes as one sentence, at most every ten seconds: a screen reader is not interrupted for each. */
export const ANNOUNCE_MS = 10_000;

export class Summary {
  #changed = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #last = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly say: (count: number) => void,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Each thing counts once, however often it changes. */
  add(id: string): void {
    this.#changed.add(id);
    if (this.#timer !== undefined) return;
    const rest = Math.max(0, this.#last + ANNOUNCE_MS - this.now());
    this.#timer = setTimeout(() => this.#tell(), rest);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #tell(): void {
    this.#timer = undefined;
    this.#last = this.now();
    this.say(this.#changed.size);
    this.#changed.clear();
  }
}
