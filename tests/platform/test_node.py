"""Node for the front end: the machine's if Vite supports it, else the wheel's."""

import os
import subprocess
from pathlib import Path

import pytest

from webapp.platform.node import new_enough, node_version, npm_command


@pytest.mark.parametrize(
    ("version", "good"),
    [((18, 20), False), ((20, 18), False), ((20, 19), True), ((21, 9), False), ((22, 11), False), ((22, 12), True), ((24, 0), True), (None, False)],
)
def test_only_node_versions_that_vite_supports_are_accepted(version: tuple[int, int] | None, good: bool) -> None:
    assert new_enough(version) is good


@pytest.mark.parametrize("version", ["v18.20.0", None])
def test_the_wheel_stands_in_for_an_old_or_missing_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    for name in ("node", "npm") if version else ():
        (tmp_path / name).write_text(f"#!/bin/sh\necho {version}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    command, environment = npm_command()
    done = subprocess.run([*command, "--version"], env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    assert int(done.stdout.split(".")[0]) >= 10
    # Package scripts start with `env node`: it must be the new one.
    assert new_enough(node_version(environment["PATH"].split(os.pathsep)[0] + "/node"))
