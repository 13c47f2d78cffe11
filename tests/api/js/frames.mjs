// A stream that comes in any pieces says the same.
import { end, given, say } from "./stage.mjs";

const { Frames } = await import(new URL("frames.js", given.client));
const text = "\uFEFFretry: 250\n\n: beat\nid: 7\nevent: a\ndata: {\"x\":\r\ndata: \"ä🚢\"}\r\n\r\nid\nevent: b\ndata:  two\rdata\r\rid: 9\n\ndata: cut";
const bytes = new TextEncoder().encode(text);
const told = new Set();
for (let size = 1; size <= bytes.length; size += 1) {
  const frames = new Frames();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const found = [];
  for (let at = 0; at < bytes.length; at += size) {
    found.push(...frames.push(decoder.decode(bytes.slice(at, at + size), { stream: true })));
  }
  told.add(JSON.stringify(found));
}
say([...told].map((each) => JSON.parse(each)));
end();
