// The client as a program uses it: runs, answers, pages, versions, files, errors.
import { HoldfastError, ProblemError, client, end, given, say, thrown } from "./stage.mjs";

const us = client();
const made = await us.request("createRun", { flow: "refund", input: { order: "A-17", amount: 40 } }, { key: "order-A-17" });
const again = await us.createRun({ flow: "refund", input: { order: "A-17", amount: 40 } }, { key: "order-A-17" });
say({ made: made.status, location: made.location, same: again.id === made.body.id });

const run = made.body.id;
const asked = await us.waitFor(run);
say({ asked: asked.status, holds: asked.open_holds.length });
const hold = await us.getHold(asked.open_holds[0]);
const stale = await thrown(() => us.resolveHold(hold.id, { decision: "approve" }, { ifMatch: hold.version + 7 }));
say({ stale: stale.status, code: stale.code, kind: stale instanceof ProblemError && stale instanceof HoldfastError });
const wrong = await thrown(() => us.resolveHold(hold.id, { decision: "perhaps" }));
say({ wrong: wrong.status, words: wrong.message === `${wrong.detail} ${wrong.hint}`, request: typeof wrong.requestId });
const decided = us.waitFor(run, { untilEnded: true });
say({ resolved: (await us.resolveHold(hold.id, { decision: "approve" }, { ifMatch: hold.version })).status });
say({ ended: (await decided).status });

const seen = await us.request("getRun", run);
const unchanged = await us.request("getRun", run, { ifNoneMatch: seen.etag });
say({ unchanged: unchanged.status, body: unchanged.body ?? null });
say({ receipt: await (await us.getArtifact(run, "receipt.txt")).text() });
say({ raw: [...new Uint8Array(await (await us.getArtifact(run, "raw")).arrayBuffer())] });

for (let number = 0; number < 5; number += 1) await us.createRun({ flow: "both", input: {} });
const listed = [];
for await (const each of us.each.listRuns({ limit: 2 })) listed.push(each.id);
say({ listed: listed.length, distinct: new Set(listed).size, last: listed.at(-1) === run });
const numbers = [];
for await (const each of us.each.listEvents(run, { limit: 3 })) numbers.push(each.number);
say({ numbers });
const flows = [];
for await (const each of us.each.listRuns({ flow: "both", status: ["pending", "running", "pending_input"], limit: 2 })) flows.push(each.flow);
say({ flows });

const complaints = [
  await thrown(() => us.getRun("")),
  await thrown(() => us.getRun("..")),
  await thrown(() => us.getRun()),
  await thrown(() => us.getRun(run, {}, {})),
  await thrown(() => us.fetch("http://127.0.0.1:9/v1/runs")),
  await thrown(() => client({ url: "" }).getRun(run)),
  await thrown(() => client({ url: "nonsense" })),
  await thrown(() => client({ url: "ftp://127.0.0.1" })),
  await thrown(() => client({ token: "hush\nhush" }).getRun(run)),
];
say({ complaints: complaints.map((each) => each.name), hushed: complaints.every((each) => !each.message.includes("hush")) });
const stranger = await thrown(() => client({ token: "hf_no" }).getRun(run));
say({ stranger: stranger.status, code: stranger.code });
const tokens = ["hf_old", given.token];
say({ renewed: (await client({ token: () => tokens.shift() }).getRun(run)).id === run });
const olds = ["hf_old"];
let followed = 0;
for await (const _ of client({ token: () => olds.shift() ?? given.token }).streamRun(run)) followed += 1;
say({ followed: followed === numbers.length });
const elsewhere = await thrown(() => client({ url: `${given.address}/nowhere` }).getRun(run));
say({ elsewhere: elsewhere.code });
const over = new AbortController();
over.abort(new Error("enough"));
say({ aborted: (await thrown(() => us.getRun(run, { signal: over.signal }))).message });
end();
