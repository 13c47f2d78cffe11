// A front end: the unmodified HttpAgent of @ag-ui/client. Says what it has seen, by lines of JSON.
import { HttpAgent, verifyEvents } from "@ag-ui/client";

const given = JSON.parse(process.env.GIVEN);
const headers = { Authorization: `Bearer ${given.token}` };
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);

function newAgent() {
  return new HttpAgent({ url: given.url, threadId: given.thread, headers, initialMessages: given.messages, initialState: given.state });
}

async function run(agent, parameters, leaveAt) {
  const seen = [];
  const ended = {};
  try {
    const result = await agent.runAgent(parameters, {
      onEvent: ({ event }) => {
        seen.push(event.type);
        if (event.type === leaveAt) agent.abortRun();
      },
      onRunFinishedEvent: ({ event }) => { Object.assign(ended, event); },
      onRunErrorEvent: ({ event }) => { Object.assign(ended, event); },
    });
    return { seen, outcome: ended.outcome, error: ended.message, result: result.result, messages: agent.messages, state: agent.state };
  } catch (error) {
    return { seen, refused: error.status ?? String(error) };
  }
}

// A tab whose connection is lost at the first step.
say(await run(newAgent(), { runId: given.runId }, "STEP_STARTED"));

// Two tabs: the same request follows the same run, from its beginning.
const tabs = [newAgent(), newAgent()];
const first = await Promise.all(tabs.map((agent) => run(agent, { runId: given.runId })));
for (const each of first) say(each);

// Both answer, under ids of their own: one is taken. Then one comes back and repeats its first request.
const interrupts = first[0].outcome?.interrupts ?? [];
const resume = interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { decision: given.decision } }));
const answers = await Promise.all(tabs.map((agent, tab) => run(agent, { runId: `${given.runId}-answer-${tab}`, resume })));
for (const each of answers) say(each);
say(await run(newAgent(), { runId: given.runId }));
say({ verify: typeof verifyEvents });
