"""docs/settings.md names every variable that the code reads, and none that it does not."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator

from webapp.platform.folders import ROOT

READERS = {"text", "flag", "names", "number", "get", "getenv", "pop", "str", "bool", "int", "list", "json", "url"}
NAME = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
OURS = re.compile(r"VEDETTE_[A-Z0-9_]+")
FOREIGN = {"PATH", "PYTHONPATH", "NUMBA_CACHE_DIR", "HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP", "DJANGO_SETTINGS_MODULE"}
"""Variables of the system and of libraries, passed on as they are or set for them."""


def read_in(source: str) -> Iterator[str]:
    """Names of environment variables in a module: what begins like ours, and what is read from the environment by a constant name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and OURS.fullmatch(node.value):
            yield node.value
        elif isinstance(node, ast.Call) and node.args and _called(node.func) in READERS and _of_environment(node.func):
            if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str) and NAME.fullmatch(node.args[0].value):
                yield node.args[0].value
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and ast.unparse(node.value).endswith("environ"):
            yield str(node.slice.value)


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def _of_environment(function: ast.expr) -> bool:
    """`text(...)` and its like of the settings, or a method of `os.environ`, `env` or `os`."""
    return isinstance(function, ast.Name) or (
        isinstance(function, ast.Attribute) and ast.unparse(function.value).split(".")[-1] in ("environ", "env", "os")
    )


def test_the_page_names_every_variable_that_is_read_and_no_other() -> None:
    listed = subprocess.run(["git", "ls-files", "webapp", "engine", "manage.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    modules = [ROOT / name for name in listed.stdout.split() if name.endswith(".py") and "/migrations/" not in name]
    read = {name for module in modules if module.exists() for name in read_in(module.read_text())} - FOREIGN
    page = (ROOT / "docs" / "settings.md").read_text()
    named = {name for line in page.splitlines() if line.startswith("| `") for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", line.split("|")[1])}
    assert read - named == set(), "read by the code, not in docs/settings.md"
    assert named - read == set(), "in docs/settings.md, read by nobody"
