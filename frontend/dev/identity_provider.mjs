// A provider of OpenID Connect for tests and for trying it out: node dev/identity_provider.mjs
// PORT Certified software (oidc-provider) on loopback. Any name logs in, with any password; the
// address is <name>@example.org. A name that begins with "unverified" has an address that the
// provider does not vouch for; one that begins with "strong" shows two factors. Clients:
// "vedette" and "vedette-two".
import Provider from "oidc-provider";

const port = Number(process.argv[2]);
const issuer = `http://127.0.0.1:${port}`;
const client = (id, callback) => ({
  client_id: id,
  client_secret: "a secret of tests",
  // Of native applications on loopback any port is accepted (RFC 8252): a test's
  // server has a new one each time.
  application_type: "native",
  redirect_uris: [`http://127.0.0.1/login/with/${callback}/callback/`],
  grant_types: ["authorization_code"],
  token_endpoint_auth_method: "client_secret_post",
});
const provider = new Provider(issuer, {
  clients: [client("vedette", "corp"), client("vedette-two", "second")],
  cookies: { keys: ["for tests only"] },
  claims: { openid: ["sub", "amr"], email: ["email", "email_verified"], profile: ["preferred_username", "name"] },
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      email: `${id}@example.org`,
      email_verified: !id.startsWith("unverified"),
      preferred_username: id,
      name: `${id} Example`,
    }),
  }),
});
// Its own pages ask for a name alone and say nothing of how a person proved who they are.
const { loginAccount } = provider.Session.prototype;
provider.Session.prototype.loginAccount = function (details) {
  const amr = details.accountId.startsWith("strong") ? ["pwd", "otp", "mfa"] : ["pwd"];
  return loginAccount.call(this, { ...details, amr });
};
provider.listen(port, "127.0.0.1", () => console.log(`ready at ${issuer}`));
