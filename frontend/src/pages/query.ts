import { openShell } from "../views/shell_view";

openShell();
