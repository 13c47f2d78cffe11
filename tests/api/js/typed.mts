// Never run: what the types promise, and what they refuse, read by the compiler as strictly as it can.
import {
  type Hold,
  type HoldEvent,
  Holdfast,
  ProblemError,
  type Run,
  type RunEvent,
  type SeedEvent,
} from "../../../src/holdfast/api/javascript/holdfast.js";

const client = new Holdfast({ url: "http://127.0.0.1:8420", token: async () => "hf_…", backoff: { first: 100 } });

export async function operations(): Promise<void> {
  const run: Run = await client.createRun({ flow: "refund", input: { order: "A-17" } }, { key: "order-17" });
  const status: "completed" | "failed" | "cancelled" | "pending" | "pending_input" | "resumable" | "running" | "waiting" =
    run.status;
  const seen = await client.request("getRun", run.id, { ifNoneMatch: "3" });
  const etag: string | null = seen.etag;
  const same: string = seen.body.id;
  const receipt: Response = await client.getArtifact(run.id, "receipt.txt");
  const nothing: void = await client.watchHold("x");
  await client.attachFile("x", { scan: new Blob(["…"]) });
  await client.listHolds({ created_from: new Date().toISOString(), tag: ["urgent"] });
  for await (const hold of client.each.listHolds({ view: "mine" })) show(hold);
  console.log(status, etag, same, receipt, nothing);

  // @ts-expect-error no such field
  await client.createRun({ workflow: "refund" });
  // @ts-expect-error no such operation
  await client.createRuns({});
  // @ts-expect-error a run has to be named
  await client.getRun();
  // @ts-expect-error the body has to say what was decided
  await client.decideMany({ holds: [] });
  // @ts-expect-error that is no status
  await client.listRuns({ status: ["done"] });
  // @ts-expect-error streams are followed, not requested
  await client.request("streamRun", run.id);
  // @ts-expect-error it is no list of pages
  client.each.getRun("x");
}

function show(hold: Hold): string {
  return `${hold.title}: ${hold.prompt} (${hold.options?.map((each) => each.id).join(", ") ?? ""})`;
}

export async function streams(run: string, signal: AbortSignal): Promise<void> {
  for await (const { id, type, data } of client.streamRun(run, { after: 3 }, { signal })) {
    const event: RunEvent = data;
    console.log(id.toFixed(), type.length, event.node);
  }
  const stream = client.streamHolds();
  await stream.listen({ "checkpoint.created": ({ data }: { data: HoldEvent }) => console.log(data.hold_id) });
  stream.close();
  const socket = client.socket({ signal });
  for await (const { data } of socket.follow<SeedEvent>(run, { names: "seed" })) {
    if (data.is_resumed) console.log(data.prompt);
  }
  const taken = await socket.answer(run, "approve", { hold: "x" });
  console.log(taken.resolved_by);
  try {
    await client.resolveHold("x", { decision: "approve" }, { ifMatch: 3 });
  } catch (error) {
    if (error instanceof ProblemError && error.code === "hold_decided") console.log(error.problem["resolved_by"]);
  }
}

export function page(runId: string, ask: (prompt: string) => Promise<boolean>): void {
  const { fetch, EventSource } = client;
  const source = new EventSource(`/runs/${runId}/stream`);
  source.addEventListener("approval", async (event) => {
    const { prompt }: { prompt: string } = JSON.parse(event.data);
    const content = (await ask(prompt)) ? "APPROVE" : "REJECT";
    await fetch(`/runs/${runId}/input`, { method: "POST", body: JSON.stringify({ content }) });
  });
}
