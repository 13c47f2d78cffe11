// Answers that are lost, and servers that have no time: what is asked again, and what must not be.
import { ConnectionError, TimeoutError, client, end, given, say, thrown } from "./stage.mjs";

/** Does what is asked, and loses the first answers. */
function losing(times) {
  const lost = { asked: 0 };
  lost.fetch = async (url, init) => {
    lost.asked += 1;
    const response = await fetch(url, init);
    if (lost.asked > times) return response;
    await response.body?.cancel();
    throw new TypeError("the answer was lost");
  };
  return lost;
}

const starting = losing(2);
const run = await client({ fetch: starting.fetch }).createRun({ flow: "refund", input: { order: "A-1", amount: 4 } });
say({ asked: starting.asked, run: run.id });
const waiting = losing(7);
const hold = (await client({ fetch: waiting.fetch }).waitFor(run.id)).open_holds[0];
say({ waited: waiting.asked });

const commenting = losing(1);
const lost = await thrown(() => client({ fetch: commenting.fetch }).commentOnHold(hold, { text: "once" }));
say({ asked: commenting.asked, kind: lost instanceof ConnectionError, hold });

const deciding = losing(1);
const decided = await client({ fetch: deciding.fetch }).resolveHold(hold, { decision: "approve" });
say({ asked: deciding.asked, status: decided.status });

// Named and kept again it is the same; taken away again, or guarded, it would be refused as if it were not done.
const kept = losing(1);
const terms = { flow: "refund", cron: "0 2 * * *", input: { order: "n", amount: 1 } };
const plan = await client({ fetch: kept.fetch }).putSchedule("nightly", terms);
const gone = losing(1);
const away = await thrown(() => client({ fetch: gone.fetch }).deleteSchedule("nightly"));
say({ name: plan.name, asked: [kept.asked, gone.asked], kind: away instanceof ConnectionError });

const nobody = await thrown(() => client({ url: "http://127.0.0.1:1", retries: 1 }).getRun("x"));
say({ nobody: nobody.name, words: nobody.message.includes("127.0.0.1:1") });
const slow = await thrown(() => client({ timeout: 50, retries: 0 }).getRunResult(given.waiting, { wait: 1 }));
say({ slow: slow.name, kind: slow instanceof TimeoutError });

// A server that takes one request a second refuses the next, and says how long to wait.
const many = client({ url: given.busy, token: given.busy_token });
const began = Date.now();
const found = await Promise.all([many.getSession(), many.getSession()]);
say({ found: found.length, waited: Date.now() - began > 800 });
end();
