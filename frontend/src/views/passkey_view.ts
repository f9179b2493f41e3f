/**
 * Forms marked `data-passkey`: the browser asks for the passkey, and the form
 * is sent with its response.
 *
 * `create` makes a passkey, `confirm` asks for one of the account's, `log-in` for any passkey of
 * this site. The server's options are in the page (`#passkey-options`); those of `log-in` are
 * fetched, because they are valid for one attempt.
 */

import { t } from "../lib/texts";
import { toBytes, toText } from "../lib/base64url";
import { anything, dictionary, otherwise, list, record, string } from "../lib/parse";

type Purpose = "create" | "confirm" | "log-in";
type Json = Record<string, unknown>;

const descriptor = record({ id: string, type: string });
const creation = record({
  creation_options: record({ publicKey: dictionary(anything) }),
});
const request = record({
  request_options: record({ publicKey: dictionary(anything) }),
});

function descriptors(value: unknown): PublicKeyCredentialDescriptor[] {
  return otherwise(list(descriptor), [])(value, "/credentials").map((one) => ({ id: toBytes(one.id), type: "public-key" }));
}

/** The options for the browser's API: base64 texts become bytes. */
export function creationOptions(source: unknown, alone: boolean): PublicKeyCredentialCreationOptions {
  const { publicKey } = creation(source, "").creation_options;
  const user = record({ id: string, name: string, displayName: string })(publicKey["user"], "/user");
  const chosen: AuthenticatorSelectionCriteria = {
    ...(publicKey["authenticatorSelection"] as Json | undefined),
    residentKey: alone ? "required" : "discouraged",
    requireResidentKey: alone,
  };
  if (alone) chosen.userVerification = "required";
  return {
    ...(publicKey as unknown as PublicKeyCredentialCreationOptions),
    challenge: toBytes(string(publicKey["challenge"], "/challenge")),
    user: { ...user, id: toBytes(user.id) },
    excludeCredentials: descriptors(publicKey["excludeCredentials"]),
    authenticatorSelection: chosen,
  };
}

function requestOptions(source: unknown): PublicKeyCredentialRequestOptions {
  const { publicKey } = request(source, "").request_options;
  return {
    ...(publicKey as unknown as PublicKeyCredentialRequestOptions),
    challenge: toBytes(string(publicKey["challenge"], "/challenge")),
    allowCredentials: descriptors(publicKey["allowCredentials"]),
  };
}

/** The browser's response as JSON, with bytes as base64 texts. */
function answered(credential: PublicKeyCredential): Json {
  const { response } = credential;
  const parts: Json = { clientDataJSON: toText(response.clientDataJSON) };
  if (response instanceof AuthenticatorAttestationResponse) {
    parts["attestationObject"] = toText(response.attestationObject);
    parts["transports"] = response.getTransports();
  } else if (response instanceof AuthenticatorAssertionResponse) {
    parts["authenticatorData"] = toText(response.authenticatorData);
    parts["signature"] = toText(response.signature);
    parts["userHandle"] = response.userHandle === null ? null : toText(response.userHandle);
  }
  return {
    id: credential.id,
    rawId: toText(credential.rawId),
    type: credential.type,
    authenticatorAttachment: credential.authenticatorAttachment,
    clientExtensionResults: credential.getClientExtensionResults(),
    response: parts,
  };
}

/** The server's options: from the page, or fetched for a log-in. */
async function options(form: HTMLFormElement, purpose: Purpose): Promise<unknown> {
  if (purpose !== "log-in") return JSON.parse(document.getElementById("passkey-options")?.textContent ?? "null");
  const answer = await fetch(form.action, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(t("The server does not answer. Try again."));
  return answer.json();
}

async function ask(form: HTMLFormElement, purpose: Purpose): Promise<void> {
  const given = await options(form, purpose);
  const alone = form.querySelector<HTMLInputElement>("input[name=passwordless]")?.checked ?? true;
  const credential =
    purpose === "create"
      ? await navigator.credentials.create({ publicKey: creationOptions(given, alone) })
      : await navigator.credentials.get({ publicKey: requestOptions(given) });
  if (!(credential instanceof PublicKeyCredential)) throw new Error(t("The browser provided no passkey."));
  const field = form.querySelector<HTMLInputElement>("input[name=credential]");
  if (field === null) throw new Error("the form has no field for the passkey");
  field.value = JSON.stringify(answered(credential));
  form.submit();
}

function reason(error: unknown): string {
  if (error instanceof DOMException && error.name === "NotAllowedError") return t("The browser got no passkey. Try again.");
  if (error instanceof DOMException && error.name === "InvalidStateError") return t("This device holds a passkey of your account already.");
  return error instanceof Error ? error.message : String(error);
}

/**
 * Activates all these forms of the page; in a browser without WebAuthn optional ones stay hidden.
 */
export function openPasskeys(): void {
  if (!("PublicKeyCredential" in window)) return;
  for (const form of document.querySelectorAll<HTMLFormElement>("form[data-passkey]")) {
    form.hidden = false;
    const fault = form.querySelector<HTMLElement>(".fault");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (fault !== null) fault.hidden = true;
      ask(form, form.dataset["passkey"] as Purpose).catch((error: unknown) => {
        if (fault === null) return;
        fault.textContent = reason(error);
        fault.hidden = false;
      });
    });
  }
}
