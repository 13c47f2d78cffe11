// What every script has: the client, what its test gave it, and lines of JSON both ways.
import { createInterface } from "node:readline";

export const given = JSON.parse(process.env.STAGE);
export const library = await import(given.client);
export const { Holdfast, ProblemError, ConnectionError, TimeoutError, HoldfastError } = library;

export function client(options = {}) {
  return new Holdfast({ url: given.address, token: given.token, backoff: { first: 20, most: 200 }, ...options });
}

export function say(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

let lines;

/** The next line that the test tells. */
export async function heard() {
  lines ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const { value, done } = await lines.next();
  return done ? null : JSON.parse(value);
}

/** What a call throws. */
export async function thrown(work) {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

export function end() {
  process.exit(0);
}
