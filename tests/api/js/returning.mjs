// A page that is closed at a question, and one that comes back to it: with what it kept, and nothing else.
import { client, end, given, say } from "./stage.mjs";

const kept = new Map();

/** Until the page is closed: what it was asked, and what it kept. */
function visit(url, { fetch, EventSource }, onAsked) {
  return new Promise((resolve) => {
    const source = new EventSource(url);
    source.addEventListener("checkpoint_created", (event) => {
      kept.set("place", event.lastEventId);
      kept.set("checkpoint", JSON.parse(event.data).checkpoint_id);
      if (JSON.parse(event.data).status === "pending_input") source.dispatchEvent(new Event("waits"));
    });
    source.addEventListener("approval", (event) => onAsked(JSON.parse(event.data)));
    for (const type of ["waits", "run.completed"]) {
      source.addEventListener(type, () => {
        if (type === "waits" && !url.includes("after")) source.close();
        if (source.readyState === 2 || type === "run.completed") resolve(source.close());
      });
    }
  });
}

const path = `/runs/${given.run}`;
const first = [];
await visit(`${path}/stream`, client(), (asked) => first.push(asked));

// Another page, later: it knows the run, and what was told last.
const { fetch, EventSource } = client();
const before = await (await fetch(path)).json();
const resumed = await fetch(`${path}/resume`, { method: "POST" });
const again = [];
await visit(`${path}/stream?after=${kept.get("place")}`, { fetch, EventSource }, async (asked) => {
  again.push(asked);
  await fetch(`${path}/input`, { method: "POST", body: JSON.stringify({ content: "APPROVE" }) });
});
const ended = await (await fetch(path)).json();
say({ first, before: before.status, resumed: resumed.status, again, status: ended.status, kept: kept.get("checkpoint") });
end();
