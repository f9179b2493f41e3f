"""The licences of everything that Vedette is delivered with:
`python -m webapp.platform.notices` writes THIRD_PARTY.md.

Packages are those of both locks, recordings those of fixtures/samples/samples.json in the same
folder."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement

from webapp.platform.dependencies import LOCKED, UV
from webapp.platform.folders import ROOT


class Package(NamedTuple):
    """A package and the licence that it states."""

    name: str
    licence: str


TARGET = ROOT / "THIRD_PARTY.md"
NODE_MODULES = ROOT / "frontend" / "node_modules"
SAMPLES = ROOT / "fixtures" / "samples"
BUNDLED_TOOLS = ("lucide-static",)
"""Only needed to build, but parts of them are in what is delivered."""
EARLIER_PYTHONS = (Package("async-timeout", "Apache Software License"),)
"""Needed before Python 3.11.3 alone, so perhaps not installed here."""
UNSTATED = "see the package"
LONGEST = 60
"""Some packages put the whole text where the licence's name belongs."""


def python_parts() -> Iterator[Package]:
    """The packages in production on this system."""
    yield from EARLIER_PYTHONS
    listed = subprocess.run([str(UV), *LOCKED, "--no-default-groups", "--no-hashes"], cwd=ROOT, capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        try:
            needed = Requirement(line.strip())
            # Packages for other systems may be installed here for another reason, like colorama for
            # the pages of docs/.
            if needed.marker is None or needed.marker.evaluate():
                yield Package(needed.name, _licence(needed.name))
        except (InvalidRequirement, PackageNotFoundError):
            continue


def _licence(name: str) -> str:
    about = metadata(name)

    def stated_as(key: str) -> list[str]:
        return about.get_all(key) or []

    classifiers = [one.rsplit(" :: ", 1)[-1] for one in stated_as("Classifier") if one.startswith("License :: ")]
    stated = ", ".join(stated_as("License-Expression") or classifiers or stated_as("License")) or UNSTATED
    return stated if len(stated) <= LONGEST and "\n" not in stated else UNSTATED


def node_parts() -> Iterator[Package]:
    """The packages whose code, fonts, icons or maps are in the page."""
    lock = json.loads((NODE_MODULES.parent / "package-lock.json").read_text())["packages"]
    for place, package in lock.items():
        name = place.rpartition("node_modules/")[2]
        if name and (not package.get("dev") or name in BUNDLED_TOOLS):
            yield Package(name, package.get("license", UNSTATED))


def recordings() -> Iterator[tuple[str, str, str]]:
    """File, origin and licence of the recordings that are delivered."""
    for sample in json.loads((SAMPLES / "samples.json").read_text(encoding="utf-8"))["samples"]:
        if (SAMPLES / sample.get("file", "")).is_file():
            yield sample["file"], sample["origin"], sample["licence"]


def written() -> str:
    """The page."""
    lines = [
        "# Third-party notices",
        "",
        "Vedette is licensed under the Apache License 2.0 (LICENSE). It is delivered with these packages,",
        "each with its own licence text. Written by `python -m webapp.platform.notices` from both locks.",
    ]
    for title, parts in (("Python", python_parts()), ("In the page", node_parts())):
        rows = [f"| {part.name} | {part.licence} |" for part in sorted(set(parts))]
        lines += ["", f"## {title}", "", "| package | licence |", "| --- | --- |", *rows]
    lines += ["", "## Recordings", "", "fixtures/samples/README.md has the terms and what was left out.", ""]
    lines += ["| file | origin | licence |", "| --- | --- | --- |", *[f"| {' | '.join(row)} |" for row in recordings()]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(written())
