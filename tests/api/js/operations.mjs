// Every method is called once against a server, and what it really sent is told.
import { Holdfast, client, end, given, library, say } from "./stage.mjs";

const EXAMPLES = { string: "x", integer: 1, number: 1, boolean: true };

function example(schema) {
  const shape = schema.anyOf?.[0] ?? schema;
  if (shape.enum) return shape.enum[0];
  return shape.type === "array" ? [example(shape.items ?? {})] : (EXAMPLES[shape.type] ?? "x");
}

let last = null;
const recording = async (url, init = {}) => {
  const { pathname, searchParams } = new URL(url);
  last = {
    method: init.method ?? "GET",
    path: pathname,
    query: [...new Set(searchParams.keys())],
    type: init.body instanceof FormData ? "multipart/form-data" : new Headers(init.headers).get("content-type"),
    has_body: init.body !== undefined,
    place: new Headers(init.headers).get("last-event-id"),
    key: new Headers(init.headers).get("idempotency-key") !== null,
  };
  const response = await fetch(url, init);
  last.status = response.status;
  if (!response.ok) last.problem = await response.clone().json();
  return response;
};

const asked = client({ fetch: recording, retries: 0 });
const document = await (await fetch(`${given.address}/openapi.json`)).json();
const described = {};
for (const [path, ways] of Object.entries(document.paths)) {
  for (const operation of Object.values(ways)) described[operation.operationId] = { path, operation };
}

const methods = Object.getOwnPropertyNames(Holdfast.prototype).filter((name) => Object.hasOwn(library.OPERATIONS, name));
say({ exports: Object.keys(library), methods, own: Object.getOwnPropertyNames(Holdfast.prototype).filter((name) => !Object.hasOwn(library.OPERATIONS, name)) });
for (const name of methods) {
  const id = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const { path, operation } = described[id] ?? {};
  if (!operation) continue;
  last = null;
  const query = {};
  for (const each of operation.parameters ?? []) if (each.in === "query") query[each.name] = example(each.schema);
  const parts = [...(path.match(/\{\w+\}/g) ?? [])].map(() => "a/ä ?#");
  if (operation.requestBody) parts.push("multipart/form-data" in operation.requestBody.content ? { file: new Blob(["x"]) } : {});
  if (operation.requestBody && !("application/json" in operation.requestBody.content) && typeof parts.at(-1) === "object"
    && !("file" in parts.at(-1))) parts[parts.length - 1] = "x";
  if (Object.keys(query).length) parts.push(query);
  try {
    const got = asked[name](...parts);
    if (typeof got.listen === "function") {
      const watch = setInterval(() => { if (got.state === "open") got.close(); }, 10);
      await got.listen(() => {}).finally(() => clearInterval(watch));
    } else await got;
  } catch (error) {
    if (error.name !== "ProblemError") throw error;
  }
  say({ id, ...last });
}
end();
