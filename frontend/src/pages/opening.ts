/** Takes the secret of a link from behind its `#`, out of the address, and sends it in a body. */

import "../styles/main.css";
import { secretOf } from "../lib/secret_links";
import { t } from "../lib/texts";

function open(): void {
  const form = document.querySelector<HTMLFormElement>("#opening");
  const field = form?.querySelector<HTMLInputElement>("input[name=secret]");
  const told = document.getElementById("opening-told");
  if (form === null || field === null || field === undefined || told === null) throw new Error("the template has no form");
  const secret = secretOf(location.hash);
  if (secret === "") {
    told.textContent = t("This link is not complete: the part behind # is missing. Copy the whole of it.");
    return;
  }
  history.replaceState(null, "", location.pathname);
  field.value = secret;
  form.submit();
}

// Somebody puts the whole link into the address of this very page.
addEventListener("hashchange", open);
open();
