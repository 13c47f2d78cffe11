// A front end: the unmodified HttpAgent of @ag-ui/client. Says what it has seen, by lines of JSON.
import { HttpAgent, verifyEvents } from "@ag-ui/client";

const given = JSON.parse(process.env.GIVEN);
const headers = { Authorization: `Bearer ${given.token}` };
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);

function newAgent() {
  return new HttpAgent({ url: given.url, threadId: given.thread, headers, initialMessages: given.messages, initialState: given.state });
}

async function run(agent, parameters) {
  const seen = [];
  const ended = {};
  const result = await agent.runAgent(parameters, {
    onEvent: ({ event }) => { seen.push(event.type); },
    onRunFinishedEvent: ({ event }) => { Object.assign(ended, event); },
    onRunErrorEvent: ({ event }) => { Object.assign(ended, event); },
  });
  return { seen, outcome: ended.outcome, error: ended.message, result: result.result, messages: agent.messages, state: agent.state };
}

// Two tabs: the same request follows the same run.
const tabs = [newAgent(), newAgent()];
const first = await Promise.all(tabs.map((agent) => run(agent, { runId: given.runId })));
for (const each of first) say(each);

// One of them answers; the other one comes back and repeats its request.
const interrupts = first[0].outcome?.interrupts ?? [];
const resume = interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { decision: given.decision } }));
say(await run(tabs[0], { runId: `${given.runId}-2`, resume }));
say(await run(newAgent(), { runId: given.runId }));
say({ verify: typeof verifyEvents });
