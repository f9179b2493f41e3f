/** Pages rendered by the server: log-in and related pages, errors, invitations. */

import "../styles/main.css";
import { isDark } from "../lib/colours";
import { setTheme } from "../lib/preferences";
import { openPasskeys } from "../views/passkey_view";

document.getElementById("theme-toggle")?.addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
openPasskeys();
