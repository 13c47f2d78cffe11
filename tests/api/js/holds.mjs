// What becomes of holds, from now on, until one is decided.
import { client, end, say } from "./stage.mjs";

const types = [];
const stream = client().streamHolds({}, { onState: (state) => { if (state === "open") setTimeout(() => say({ state }), 0); } });
for await (const { type, data } of stream) {
  if (!["checkpoint.created", "checkpoint.resolved"].includes(type)) continue;
  types.push(type);
  say({ hold: data.hold_id });
  if (type === "checkpoint.resolved") break;
}
say({ types });
end();
