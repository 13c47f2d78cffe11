// A real OpenID provider for tests: oidc-provider, with people that it makes up by the name they sign in with.
// Says its address on one line, and lives until its stdin is closed.
import { createServer } from "node:http";
import Provider from "oidc-provider";

const server = createServer((request, response) => handle(request, response));
let handle;

const people = (id) => ({
  accountId: id,
  async claims() {
    return {
      sub: id,
      email: `${id}@Acme.example`,
      email_verified: id !== "nobody",
      groups: id === "dana" ? ["platform", "everybody"] : ["everybody"],
      org: id === "stray" ? "elsewhere" : "acme.example",
    };
  },
});

server.listen(0, "127.0.0.1", () => {
  const address = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(address, {
    clients: [
      {
        client_id: "holdfast",
        client_secret: "a secret+with/odd characters",
        application_type: "native",
        redirect_uris: ["http://127.0.0.1/sign-in/oidc/callback"],
        token_endpoint_auth_method: "client_secret_basic",
      },
    ],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["groups", "org"] },
    findAccount: (_context, id) => people(id),
    cookies: { keys: ["only for tests"] },
    ttl: { AccessToken: 300, AuthorizationCode: 60, IdToken: 300, Interaction: 300, Session: 300, Grant: 300 },
  });
  handle = provider.callback();
  console.log(address);
});

process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
