"""The project's dependencies: `python -m webapp.platform.dependencies` (part of `make check`).

Asks the indexes of known vulnerabilities about everything in both locks, and writes both lists of
parts (SBOM, CycloneDX) into `var/sbom/`. An index that cannot be reached is not a failure, but is
reported; the containers' images that are named only by version are reported too.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from webapp.platform.folders import ROOT, var_folder

UV = Path(sys.prefix) / "bin" / "uv"
NPM = (sys.executable, "-m", "webapp.platform.node")
LOCKED = ("export", "--locked", "--quiet", "--no-emit-project", "--project", str(ROOT))
SECONDS = 180


def main() -> int:
    """1 if something has a known vulnerability, else 0."""
    with tempfile.TemporaryDirectory() as scratch:
        requirements = Path(scratch) / "requirements.txt"
        _run([str(UV), *LOCKED, "--all-groups", "--format", "requirements.txt", "--output-file", str(requirements)])
        findings = [*python_audit(requirements), *node_audit()]
    write_sboms(var_folder() / "sbom")
    if images := without_digest((ROOT / "docker" / "images.env").read_text()):
        _say(f"Images without a digest in docker/images.env: {', '.join(images)}. Run docker/pin where registries can be asked.")
    for line in findings:
        _say(f"VULNERABLE: {line}")
    return 1 if findings else 0


def python_audit(requirements: Path, service: Sequence[str] = ()) -> list[str]:
    """Known vulnerabilities of the packages in a file of exact requirements, one a line. `service`:
    pip-audit's options for another index."""
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "--requirement",
        str(requirements),
        "--disable-pip",
        "--require-hashes",
        "--format",
        "json",
        *service,
    ]
    answer = _json(_run([*command, "--progress-spinner", "off"], check=False))
    if answer is None:
        _say("Python packages are not audited: the index of vulnerabilities cannot be asked.")
        return []
    skipped = [one["name"] for one in answer["dependencies"] if "skip_reason" in one]
    if skipped:
        count, first = len(answer["dependencies"]), ", ".join(skipped[:3])
        _say(f"{len(skipped)} of {count} Python packages are not audited: the index does not answer for {first} ...")
    return [
        f"{one['name']} {one['version']}: {fault['id']}, fixed in {', '.join(fault['fix_versions']) or 'no version'}"
        for one in answer["dependencies"]
        for fault in one.get("vulns", ())
    ]


def node_audit(*options: str) -> list[str]:
    """Known vulnerabilities of the front end's packages, one a line. `options`: npm's."""
    answer = _json(_run([*NPM, "audit", "--json", *options], check=False))
    if answer is None or "vulnerabilities" not in answer:
        _say("The front end's packages are not audited: the registry's list of vulnerabilities cannot be asked.")
        return []
    return [f"{name} {fault['range']}: {fault['severity']}" for name, fault in sorted(answer["vulnerabilities"].items())]


def without_digest(text: str) -> list[str]:
    """The images of `docker/images.env` without a digest, whose content may change.

    >>> without_digest("# Why\\nA_IMAGE=a/b:1.2\\nB_IMAGE=c:3@sha256:" + 64 * "0")
    ['a/b:1.2']
    """
    images = [line.partition("=")[2] for line in text.splitlines() if line and not line.startswith("#")]
    return [image for image in images if not re.search(r"@sha256:[0-9a-f]{64}$", image)]


def write_sboms(folder: Path) -> None:
    """Both SBOMs, as CycloneDX 1.5, of the packages in production."""
    folder.mkdir(parents=True, exist_ok=True)
    python = _run([str(UV), *LOCKED, "--no-default-groups", "--format", "cyclonedx1.5", "--preview-features", "sbom-export"])
    node = _run([*NPM, "sbom", "--sbom-format", "cyclonedx", "--package-lock-only", "--omit", "dev"])
    for name, text in (("python", python), ("frontend", node)):
        (folder / f"{name}.cdx.json").write_text(text)
    _say(f"What Vedette is built from: {folder}/python.cdx.json and frontend.cdx.json")


def _run(command: Sequence[str], *, check: bool = True) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS)
    if check and done.returncode != 0:
        raise SystemExit(f"{' '.join(command[:4])} ... failed:\n{done.stderr}")
    return done.stdout


def _json(text: str) -> dict[str, Any] | None:
    """The output of a program, None without any."""
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
