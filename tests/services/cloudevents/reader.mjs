// Reads messages of CloudEvents by the official library: one object a line, with headers and body in base64.
import { HTTP } from "cloudevents";

let text = "";
for await (const part of process.stdin) text += part;
for (const line of text.split("\n").filter(Boolean)) {
  const { headers, body } = JSON.parse(line);
  const event = HTTP.toEvent({ headers, body: Buffer.from(body, "base64").toString("utf8") });
  event.validate();
  const { id, source, type, subject, time, data } = event;
  process.stdout.write(`${JSON.stringify({ id, source, type, subject, time, data })}\n`);
}
