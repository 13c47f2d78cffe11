// The runtime proposal's page, in our words: with names that the platform gives, taken from the client instead.
// Tests hand over `fetch` and `EventSource`, what shows a question, and where to keep things.
async function page({ fetch, EventSource, runId, ask, storage, log }) {
  const source = new EventSource(`/runs/${runId}/stream`);

  source.addEventListener("checkpoint_created", (event) => {
    storage.setItem(`checkpoint_${runId}`, JSON.parse(event.data).checkpoint_id);
  });

  source.addEventListener("approval", async (event) => {
    const asked = JSON.parse(event.data);
    log({ prompt: asked.prompt, resumed: asked.is_resumed });
    const approved = await ask(asked.prompt);
    await fetch(`/runs/${runId}/input`, {
      method: "POST",
      body: JSON.stringify({ content: approved ? "APPROVE" : "REJECT" }),
    });
  });

  async function comeBack() {
    const run = await (await fetch(`/runs/${runId}`)).json();
    log({ status: run.status });
    if (run.status === "pending_input") await fetch(`/runs/${runId}/resume`, { method: "POST" });
  }

  await comeBack();
  await new Promise((resolve) => source.addEventListener("run.completed", resolve));
  source.close();
  const ended = await (await fetch(`/runs/${runId}`)).json();
  return { status: ended.status, kept: storage.getItem(`checkpoint_${runId}`), state: source.readyState };
}
