"""docs/settings.md names exactly the variables that the code reads."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator

from webapp.platform.folders import ROOT

NAME = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
OURS = re.compile(r"VEDETTE_[A-Z0-9_]+")
IN_SHELL = re.compile(r"\$\{?(VEDETTE_[A-Z0-9_]+)")
FOREIGN = {"PATH", "PYTHONPATH", "HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP", "DJANGO_SETTINGS_MODULE"}
"""Variables of the system and of libraries, passed on as they are or set for them."""
SETTINGS = "webapp/config/settings/"


def read_in(source: str, *, settings: bool = False) -> Iterator[str]:
    """Names of environment variables in a module: what begins like ours, and every constant name
    that is looked up in something called an environment. In the `settings`, every function that is
    called with such a name reads it: they have special functions for that."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and OURS.fullmatch(node.value):
            yield node.value
        elif isinstance(node, ast.Call) and (_environment(node.func) or (settings and isinstance(node.func, ast.Name))) and node.args:
            yield from _name(node.args[0])
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _environment(node.value):
            yield from _name(node.slice)


def _environment(node: ast.expr) -> bool:
    """`os.environ`, `environment`, `os.getenv`, `env.str`, `environment.get`, ..."""
    return any(part in ("env", "getenv") or part.startswith("environ") for part in ast.unparse(node).split("."))


def _name(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
        yield node.value


def read() -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "webapp", "engine", "manage.py", "docker"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    modules = [name for name in listed if name.endswith(".py") and "/migrations/" not in name and (ROOT / name).exists()]
    python = {found for name in modules for found in read_in((ROOT / name).read_text(), settings=name.startswith(SETTINGS))}
    shell = {found for name in listed if name.startswith("docker/") for found in IN_SHELL.findall((ROOT / name).read_text())}
    return (python | shell) - FOREIGN


def test_every_way_of_reading_a_variable_is_recognised() -> None:
    """The ways of reading that the code uses; similar names are ignored."""
    source = """
A = env.db_url("ONE_URL")
B = environment["TWO"] if environment.get("THREE") else os.getenv("FOUR")
os.environ["WRITTEN"] = "1"
LIMITS = {"connect_timeout": 10, "NOT": "VEDETTE_FIVE"}
LOG = log_of("NO_VARIABLE")
"""
    assert set(read_in(source)) == {"ONE_URL", "TWO", "THREE", "FOUR", "VEDETTE_FIVE"}
    assert set(read_in('DATABASES = {"default": _database("SIX_URL")}', settings=True)) == {"SIX_URL"}


def test_the_page_names_every_variable_that_is_read_and_no_other() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    named = {name for line in page.splitlines() if line.startswith("| `") for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", line.split("|")[1])}
    used = read()
    assert used - named == set(), "read by the code, not in docs/settings.md"
    assert named - used == set(), "in docs/settings.md, not read by the code"
