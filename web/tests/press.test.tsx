// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it, vi } from "vitest";
import { ignoreSecondPresses } from "@/app/secondPress";
import { DRAWN, useAction } from "@/components/useAction";

function buttons(html: string): { page: Document; pressed: string[] } {
  const page = document.implementation.createHTMLDocument();
  page.body.innerHTML = html;
  const pressed: string[] = [];
  page.body.addEventListener("click", (event) => pressed.push((event.target as Element).id));
  page.body.addEventListener("keydown", (event) => pressed.push(`key ${(event.target as Element).id}`));
  ignoreSecondPresses(page);
  return { page, pressed };
}

function click(page: Document, id: string, detail: number): boolean {
  return page.getElementById(id)!.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, detail }));
}

it("the second click of a double click presses no button, unless it may be repeated", () => {
  const { page, pressed } = buttons('<button><b id="one"></b></button><i data-repeat><button id="zoom"></button></i><p id="text"></p>');
  expect(["one", "zoom", "text"].map((id) => [click(page, id, 1), click(page, id, 2), click(page, id, 3)])).toEqual([[true, false, false], [true, true, true], [true, true, true]]);
  expect(click(page, "one", 0)).toBe(true); // by key or by a screen reader
  expect(pressed).toEqual(["one", "zoom", "zoom", "zoom", "text", "text", "text", "one"]);
});

it("a key that is held down presses a button once", () => {
  const { page, pressed } = buttons('<button id="one"></button><input id="field">');
  const hold = (id: string, key: string) =>
    [false, true].map((repeat) => page.getElementById(id)!.dispatchEvent(new KeyboardEvent("keydown", { key, repeat, bubbles: true, cancelable: true })));
  expect([hold("one", "Enter"), hold("one", " "), hold("one", "j"), hold("field", "Enter")]).toEqual([[true, false], [true, false], [true, true], [true, true]]);
  expect(pressed).toHaveLength(6);
});

it("an action is sent once until its answer is drawn, and again after that", async () => {
  vi.useFakeTimers();
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  const sent: ((fails: boolean) => void)[] = [];
  function Part() {
    const action = useAction({ mutationFn: () => new Promise<void>((done, failed) => sent.push((fails) => (fails ? failed(new Error("no")) : done()))) });
    return <button type="button" onClick={() => action.mutate()}>{"Act"}</button>;
  }
  const client = new QueryClient();
  const place = document.body.appendChild(document.createElement("div"));
  await act(async () => createRoot(place).render(<QueryClientProvider client={client}><Part /></QueryClientProvider>));
  const button = place.querySelector("button")!;
  for (const fails of [true, false]) {
    await act(async () => {
      button.click();
      button.click();
    });
    await act(async () => sent.at(-1)!(fails));
    // Not before what came of it is drawn.
    await act(async () => button.click());
    await act(() => vi.advanceTimersByTimeAsync(DRAWN));
  }
  vi.useRealTimers();
  expect(sent).toHaveLength(2);
});
