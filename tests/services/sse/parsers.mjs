// Bytes of a text/event-stream on stdin; on stdout one line of JSON for each parser: its name, and the messages
// that it hands to its caller.
import { createParser } from "eventsource-parser";
import { getLines, getMessages } from "@microsoft/fetch-event-source/lib/cjs/parse.js";

const parts = [];
for await (const part of process.stdin) parts.push(part);
const whole = Buffer.concat(parts);

const parsed = [];
const parser = createParser({ onEvent: ({ id, event, data }) => parsed.push({ id, event, data }) });
parser.feed(whole.toString());
console.log(JSON.stringify({ name: "eventsource-parser", told: parsed }));

const read = [];
const told = ({ id, event, data }) => read.push({ id, event, data });
getLines(getMessages(() => {}, () => {}, told))(new Uint8Array(whole));
console.log(JSON.stringify({ name: "fetch-event-source", told: read }));
