// Several runs by one socket, answered and stopped over it.
import { ConnectionError, client, end, given, say, thrown } from "./stage.mjs";

const states = [];
const socket = client().socket({ onState: (state) => states.push(state) });

async function follow(run, work = () => {}) {
  const seen = [];
  for await (const event of socket.follow(run)) {
    seen.push(event.id);
    await work(event);
  }
  return seen;
}

const [asked, stopped, talked] = await Promise.all([
  follow(given.asks, async ({ type }) => {
    if (type !== "hold.opened") return;
    say({ answered: (await socket.answer(given.asks, "approve")).status });
  }),
  follow(given.stops, async ({ type }) => {
    if (type !== "hold.opened") return;
    const done = await socket.cancel(given.stops, { reason: "enough" }).catch((error) => error);
    say({ cancelled: done instanceof ConnectionError ? "unknown" : done.id === given.stops });
    // Whether it was done is not known: somebody looks, and asks again where it was not.
    if (done instanceof ConnectionError) await client().cancelRun(given.stops).catch(() => {});
  }),
  follow(given.talks),
]);
say({ asked, stopped, talked });
const nothing = await thrown(async () => { for await (const _ of socket.follow("nope")); });
say({ nothing: nothing.code });
say({ ping: await socket.ping() });
socket.close();
say({ after: (await thrown(() => socket.ping())).name });
const stranger = client({ token: "hf_no" }).socket();
say({ stranger: (await thrown(() => stranger.ping())).code });
say({ states, over: states.at(-1) });
end();
