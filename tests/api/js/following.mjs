// A run is followed, and told event by event. The test says what to do with `stops`.
import { client, end, given, say, thrown } from "./stage.mjs";

const us = client(given.retry ? { backoff: given.retry } : {});
const states = [];
const signal = new AbortController();
const stream = us.streamRun(given.run, given.query ?? {}, {
  signal: signal.signal,
  onState: (state) => {
    states.push(state);
    if (given.tells) say({ state });
  },
  ...(given.options ?? {}),
});

async function iterate() {
  for await (const { id, type, data } of stream) {
    say({ id, type, text: data.data?.data });
    if (given.stops?.break === id) break;
    if (given.stops?.close === id) stream.close();
    if (given.stops?.abort === id) signal.abort(new Error("enough"));
  }
}

if (given.listens) {
  const seen = { all: [], emitted: 0 };
  await stream.listen({ "*": async ({ id }) => { await null; seen.all.push(id); }, "node.emitted": () => { seen.emitted += 1; } });
  say(seen);
} else if (given.stops?.abort || given.fails) {
  const error = await thrown(iterate);
  say({ thrown: error.message, code: error.code ?? null });
} else await iterate();
say({ over: true, last: stream.last, states });
end();
