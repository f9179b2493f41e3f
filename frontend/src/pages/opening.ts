/**
 * Takes the secret of a link from the fragment, removes it from the
 * address, and sends it in a body.
 */

import "../styles/main.css";
import { secretOf } from "../lib/secret_links";
import { t } from "../lib/texts";

function open(): void {
  const form = document.querySelector<HTMLFormElement>("#opening");
  const field = form?.querySelector<HTMLInputElement>("input[name=secret]");
  const message = document.getElementById("opening-message");
  if (form === null || field === null || field === undefined || message === null) throw new Error("the template has no form");
  const secret = secretOf(location.hash);
  if (secret === "") {
    message.textContent = t("This link is incomplete: the part after # is missing. Copy the whole link.");
    return;
  }
  history.replaceState(null, "", location.pathname);
  field.value = secret;
  form.submit();
}

// The reader pastes the whole link into the address of this page.
addEventListener("hashchange", open);
open();
