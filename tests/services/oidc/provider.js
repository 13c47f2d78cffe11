// A real OpenID provider for tests: oidc-provider, with people that it makes up by the name they sign in with.
// Says its address on one line, and lives until its stdin is closed.
import { createServer } from "node:http";
import Provider from "oidc-provider";

let handle;
let told; // where notices of sign-outs go: the tests' servers have ports of their own

const server = createServer(async (request, response) => {
  if (request.url !== "/told") return handle(request, response);
  told = (await request.setEncoding("utf8").toArray()).join("");
  response.end();
});

const people = (id) => ({
  accountId: id,
  async claims() {
    return {
      sub: id,
      email: `${id}@Acme.example`,
      email_verified: id !== "nobody",
      groups: id === "dana" ? ["platform", "everybody"] : ["everybody"],
      org: id === "stray" ? "elsewhere" : id === "both" ? ["globex.example", "acme.example"] : "acme.example",
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
        backchannel_logout_uri: "http://127.0.0.1:9/sign-in/oidc/logout",
        backchannel_logout_session_required: true,
      },
    ],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["groups", "org"] },
    findAccount: (_context, id) => people(id),
    features: { backchannelLogout: { enabled: true } },
    // Its own dispatcher refuses loopback addresses.
    fetch: (place, options) => fetch(told ?? place, { ...options, dispatcher: undefined }),
    cookies: { keys: ["only for tests"] },
    ttl: { AccessToken: 300, AuthorizationCode: 60, IdToken: 300, Interaction: 300, Session: 300, Grant: 300 },
  });
  handle = provider.callback();
  console.log(address);
});

process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
