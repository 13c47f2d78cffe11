/** A key under which a request is done once, however often it is sent. Unique is enough; it is no secret. */
export function newKey() {
  const random = globalThis.crypto?.getRandomValues?.(new Uint8Array(16)) ?? Array.from({ length: 16 }, () => Math.random() * 256);
  return `js-${Array.from(random, (each) => Math.floor(each).toString(16).padStart(2, "0")).join("")}`;
}
