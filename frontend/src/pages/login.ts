/** Pages that the server writes whole: the log-in and what belongs to it, errors, invitations. */

import "../styles/main.css";
import { isDark } from "../lib/colours";
import { setTheme } from "../lib/preferences";
import { openPasskeys } from "../views/passkey_view";

document.getElementById("theme-toggle")?.addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
openPasskeys();
