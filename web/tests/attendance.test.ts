import { expect, test } from "vitest";
import { UNATTENDED, attendedFetch } from "@/services/attendance";

test("what an unattended page asks is marked, until its person acts again", async () => {
  const page = new EventTarget();
  const seen: (string | null)[] = [];
  let now = 1_000;
  const sent = attendedFetch(page, (_address, init) => {
    const headers = new Headers(init?.headers);
    seen.push(headers.get(UNATTENDED));
    expect(headers.get("accept")).toBe("application/json");
    return Promise.resolve(new Response());
  }, () => now);
  const ask = () => sent("/v1/runs", { headers: { Accept: "application/json" } });
  await ask();
  now += 59_000;
  await ask();
  now += 1_000;
  await ask();
  page.dispatchEvent(new Event("keydown"));
  await ask();
  expect(seen).toEqual([null, null, "1", null]);
});
