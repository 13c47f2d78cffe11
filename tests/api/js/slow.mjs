// Somebody who reads slowly: what waits for them is bounded, and nothing is lost.
import { client, end, given, say } from "./stage.mjs";

const socket = client().socket();
const following = socket.follow(given.run);
while (!following.isPaused) await new Promise((resolve) => setTimeout(resolve, 10));
const kept = following.last;
const seen = [];
for await (const { id } of following) seen.push(id);
// Left in the middle and begun anew at once: what is under way of the first is not taken for the second.
for await (const { id } of socket.follow(given.run)) if (id === 40) break;
const anew = [];
for await (const { id } of socket.follow(given.run)) anew.push(id);
say({ kept, seen, anew });
end();
