// A program with the types that openapi-typescript makes of /openapi.json: it has to compile as it stands.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Run = components["schemas"]["RunDetail"];
const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8420", headers: { Authorization: "Bearer x" } });

// Only what the caller means: every other field of the body has a default. `input` is an object of any shape.
const started = await client.POST("/v1/runs", {
  body: { flow: "refund", input: { order: "A1", amount: 7, lines: [{ sku: "x", tags: ["a", "b"] }], note: null } },
});
if (started.error) throw new Error(`${started.error.code}: ${started.error.detail}`);
const run: Run = started.data;
const read = await client.GET("/v1/runs/{run}", { params: { path: { run: run.id } } });
const status: string | undefined = read.data?.status;
const result = await client.GET("/v1/runs/{run}/result", { params: { path: { run: run.id }, query: { wait: 20 } } });
const amount: unknown = result.data?.state?.["amount"];
await client.POST("/v1/runs/{run}/resume", { params: { path: { run: run.id } }, body: {} });
await client.POST("/v1/runs/{run}/input", { params: { path: { run: run.id } }, body: { content: "approve" } });
await client.POST("/v1/threads/{thread}/runs", {
  params: { path: { thread: "t" }, header: { "Idempotency-Key": "k-1" } },
  body: { flow: "refund", input: { nested: { any: ["shape"] } } },
});
const holds = await client.GET("/v1/holds", { params: { query: { limit: 5 } } });
for (const hold of holds.data?.items ?? []) {
  const option = hold.options?.[0]?.id;
  if (option === undefined) continue;
  await client.POST("/v1/holds/{hold}/resolve", { params: { path: { hold: hold.id } }, body: { decision: option } });
}
await client.PUT("/v1/schedules/{name}", {
  params: { path: { name: "daily" } },
  body: { flow: "refund", every: "1h", input: { order: "A1" } },
});
await client.DELETE("/v1/runs/{run}", { params: { path: { run: run.id } } });
console.log(status, amount);
