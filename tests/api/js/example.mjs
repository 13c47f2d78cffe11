import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";
import { client, end, given, say } from "./stage.mjs";

const page = runInThisContext(`(${readFileSync(new URL("example.js", import.meta.url), "utf8").replace(/^\/\/.*$/gm, "")})`);
const kept = new Map();
const storage = { setItem: (name, value) => kept.set(name, value), getItem: (name) => kept.get(name) ?? null };
const { fetch, EventSource } = client();
say(await page({ fetch, EventSource, runId: given.run, ask: async () => true, storage, log: (told) => say(told) }));
end();
