"""The layers of ARCHITECTURE.md, read from the sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ENGINE = Path(__file__).resolve().parents[2] / "engine"
FILES = sorted(path for path in ENGINE.rglob("*.py"))
SPARK = [path for path in FILES if path.parent.name == "runtime" and path.name.startswith(("spark", "executors"))]
PACKAGES = ("border_monitoring", "event_calculus", "constraint_queries", "motion_patterns", "complex_events", "occupancy", "encounter", "arrival")
OPERATORS = [path for path in FILES if path.parent.name in PACKAGES]
OUTSIDE = {"random", "secrets", "time", "datetime", "socket", "subprocess", "requests", "urllib", "http", "threading", "pickle", "logging"}


def imported(path: Path) -> Iterator[str]:
    """Top-level names of all modules that a file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def called(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ENGINE)))
def test_the_engine_knows_neither_django_nor_the_web_application(path: Path) -> None:
    assert not {"django", "webapp", "celery", "channels"} & set(imported(path))


@pytest.mark.parametrize("path", [path for path in FILES if path not in SPARK], ids=lambda path: str(path.relative_to(ENGINE)))
def test_only_the_spark_runtime_imports_pyspark(path: Path) -> None:
    assert not {"pyspark", "py4j"} & set(imported(path))


@pytest.mark.parametrize("path", OPERATORS, ids=lambda path: str(path.relative_to(ENGINE)))
def test_operators_have_no_clock_no_randomness_and_no_way_out(path: Path) -> None:
    assert not OUTSIDE & set(imported(path))
    assert not {"open", "print", "input", "eval", "exec"} & set(called(path))


def test_the_checks_look_at_something() -> None:
    assert len(FILES) > 30
    assert any(path.name == "operator.py" for path in OPERATORS)
    assert SPARK


MODULES = {".".join(path.relative_to(ENGINE.parent).with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}


def modules_used(module: str) -> set[str]:
    """The modules of the engine that a module imports, wherever it does, also for types alone."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            found |= names or {node.module}
    return found & MODULES.keys() - {module}


def test_modules_of_the_engine_do_not_import_each_other_in_a_circle() -> None:
    used = {module: modules_used(module) for module in MODULES}
    left = dict(used)
    # What imports nothing that is left, and what nothing imports that is left, is in no circle.
    while free := {one for one in left if not left.keys() & left[one]} | (left.keys() - set().union(*left.values())):
        left = {module: needed for module, needed in left.items() if module not in free}
    assert left == {}


ROOT = ENGINE.parent
APPS = ("cage", "config", "accounts", "audit", "feeds", "queries", "alerts", "detections", "jobs", "entities", "overlays", "live", "demo")
"""The web application's apps, each using those before it."""
BACK = {
    "config": {"accounts", "audit", "feeds", "queries", "alerts", "detections", "jobs", "entities", "overlays", "live", "demo"},
    "accounts": {"audit", "feeds", "queries", "jobs"},
    "feeds": {"queries", "detections", "jobs"},
    "queries": {"alerts"},
    "alerts": {"detections"},
    "detections": {"jobs"},
}
"""Arrows that still go back; `config` has the table of addresses. This list only gets shorter."""


def apps_used(app: str) -> set[str]:
    """The apps whose modules those of `app` import, or whose addresses they include."""
    found = set()
    for path in (ROOT / "webapp" / app).rglob("*.py"):
        if "migrations" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            found |= {name.split(".")[1] for name in names if name.startswith("webapp.")}
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(".urls") and node.value.startswith("webapp."):
                found.add(node.value.split(".")[1])
    return found - {app}


@pytest.mark.parametrize("app", APPS)
def test_apps_use_those_before_them(app: str) -> None:
    later = set(APPS[APPS.index(app) + 1 :])
    assert apps_used(app) & later == BACK.get(app, set())


def test_every_app_has_its_layer() -> None:
    found = {path.parent.name for path in (ROOT / "webapp").glob("*/apps.py")}
    assert found - {"cage", "config"} == set(APPS) - {"cage", "config"}


def test_nothing_of_the_product_needs_the_demo() -> None:
    assert [app for app in APPS if app not in ("config", "demo") and "demo" in apps_used(app)] == []
