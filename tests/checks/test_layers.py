"""The layers of ARCHITECTURE.md, read from the sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from engine.families import FAMILIES

ENGINE = Path(__file__).resolve().parents[2] / "engine"
FILES = sorted(path for path in ENGINE.rglob("*.py"))
SPARK = [path for path in FILES if path.parent.name == "runtime" and path.name.startswith(("spark", "executors"))]
PACKAGES = {family.package.rpartition(".")[2] for family in FAMILIES.values()}
OPERATORS = [path for path in FILES if path.parent.name in PACKAGES]
OUTSIDE = {"random", "secrets", "time", "datetime", "socket", "subprocess", "requests", "urllib", "http", "threading", "pickle", "logging"}


@cache
def nodes_of(path: Path) -> list[ast.Import | ast.ImportFrom | ast.Call]:
    """The imports and calls in a file, which is parsed once for all tests."""
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)]


def imported(path: Path) -> Iterator[str]:
    """Top-level names of all modules that a file imports, anywhere in it."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def called(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ENGINE)))
def test_the_engine_knows_neither_django_nor_the_web_application(path: Path) -> None:
    assert not {"django", "webapp", "celery", "channels"} & set(imported(path))


@pytest.mark.parametrize("path", [path for path in FILES if path not in SPARK], ids=lambda path: str(path.relative_to(ENGINE)))
def test_only_the_spark_runtime_imports_pyspark(path: Path) -> None:
    assert not {"pyspark", "py4j"} & set(imported(path))


@pytest.mark.parametrize("path", OPERATORS, ids=lambda path: str(path.relative_to(ENGINE)))
def test_operators_use_no_clock_no_randomness_and_no_io(path: Path) -> None:
    assert not OUTSIDE & set(imported(path))
    assert not {"open", "print", "input", "eval", "exec"} & set(called(path))
    assert "np.random" not in path.read_text()


def test_imports_name_modules_in_full() -> None:
    """The checks here would not see a relative import."""
    files = [path for package in ("engine", "webapp") for path in (ENGINE.parent / package).rglob("*.py")]
    relative = {str(path): node.lineno for path in files for node in nodes_of(path) if isinstance(node, ast.ImportFrom) and node.level}
    assert relative == {}


def test_the_layer_checks_see_imports() -> None:
    assert len(FILES) > 30
    assert {path.parent.name for path in OPERATORS} == PACKAGES and len(PACKAGES) > 5
    assert any(path.name == "operator.py" for path in OPERATORS)
    assert SPARK


MODULES = {".".join(path.relative_to(ENGINE.parent).with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}


def modules_used(module: str) -> set[str]:
    """The modules of the engine that a module imports, anywhere in it, also only for types."""
    found = set()
    for node in nodes_of(MODULES[module]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            found |= names or {node.module}
    return found & MODULES.keys() - {module}


def circles(left: dict[str, set[str]]) -> dict[str, set[str]]:
    """Those that import each other in a circle, or are between two circles, of: name
    -> names that it imports."""
    # Without remaining imports, or imported by no remaining one, nothing is in a circle.
    while free := {one for one in left if not left.keys() & left[one]} | (left.keys() - set().union(*left.values())):
        left = {one: used - free for one, used in left.items() if one not in free}
    return left


def test_circles_are_found() -> None:
    assert circles({"above": {"a"}, "a": {"b"}, "b": {"a", "below"}, "below": set()}) == {"a": {"b"}, "b": {"a"}}


def test_modules_of_the_engine_do_not_import_each_other_in_a_circle() -> None:
    assert circles({module: modules_used(module) for module in MODULES}) == {}


ROOT = ENGINE.parent
WEBAPP = ROOT / "webapp"
BELOW = {"platform", "cage", "config"}
"""Below the apps: processes, confinement, settings."""
APPS = ("audit", "accounts", "jobs", "feeds", "queries", "detections", "alerts", "connectors", "entities", "overlays", "supervisor", "live", "demo")
"""The web application's apps; each imports only those before it."""
PAGES = re.compile(r"(\w+_)?(api|filters|views|urls|admin|context|pages|test_support)|apps|asgi|management/.*")
"""Modules that answer requests and commands, and that connect apps: a layer above all apps,
wherever their files are."""


def files_of(app: str) -> list[Path]:
    return [path for path in sorted((WEBAPP / app).rglob("*.py")) if "migrations" not in path.parts]


def is_page(path: Path) -> bool:
    return PAGES.fullmatch(str(path.relative_to(WEBAPP).with_suffix("")).partition("/")[2].removeprefix("uploads/")) is not None


def modules_of_webapp(path: Path) -> set[str]:
    """The modules of the web application that a file imports, anywhere in it, also only for
    types."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.startswith("webapp.")}


def apps_used(path: Path) -> set[str]:
    return {name.split(".")[1] for name in modules_of_webapp(path)}


@pytest.mark.parametrize("app", APPS)
def test_apps_import_only_apps_of_lower_layers(app: str) -> None:
    later = set(APPS[APPS.index(app) + 1 :])
    back = {str(path.relative_to(ROOT)): apps_used(path) & later for path in files_of(app) if not is_page(path)}
    assert {path: apps for path, apps in back.items() if apps} == {}


@pytest.mark.parametrize("package", sorted(BELOW))
def test_modules_below_the_apps_import_no_app(package: str) -> None:
    back = {str(path.relative_to(ROOT)): apps_used(path) & set(APPS) for path in files_of(package) if not is_page(path)}
    assert {path: apps for path, apps in back.items() if apps} == {}


OPEN = {"models", "services", "selectors"}
OPEN_BESIDE = {
    "audit": {"logins", "sockets"},
    "accounts": {"language", "owned", "permissions", "quotas", "second_factor"},
    "feeds": {
        "credentials", "damage", "documents", "heads", "history", "ingest", "logs", "offsets", "rates", "recent", "region_files",
        "uploads.inspection", "uploads.store",
    },
    "queries": {"derivation", "regions", "sentences.kinds", "versions"},
    "detections": {"changes", "evidence", "partitions"},
}  # fmt: skip
"""Public modules in addition to OPEN. All other modules are private to their app."""
OPEN_TO_PAGES = {
    "accounts": {"audit_log", "authentication"},
    "feeds": {"client", "exchange", "of_feed", "plan"},
    "queries": {"region_import"},
    "detections": {"removal"},
    "connectors": {"facts", "rows"},
    "supervisor": {"measures"},
}
"""Further modules of other apps that pages use. A page may also use pages of other apps."""


def used_by_others(app: str, *, pages: bool) -> set[str]:
    """The modules of `app` that pages of other apps import (its pages left out), or all others."""
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files_of(app) if not (pages and is_page(path))}
    users = [path for other in APPS if other != app for path in files_of(other) if is_page(path) == pages]
    return {name.removeprefix(f"webapp.{app}.") for path in users for name in modules_of_webapp(path) & modules}


@pytest.mark.parametrize("app", APPS)
def test_apps_import_only_the_public_modules_of_other_apps(app: str) -> None:
    assert used_by_others(app, pages=False) - OPEN == OPEN_BESIDE.get(app, set())


@pytest.mark.parametrize("app", APPS)
def test_pages_import_only_the_public_modules_and_pages_of_other_apps(app: str) -> None:
    assert used_by_others(app, pages=True) - OPEN - OPEN_BESIDE.get(app, set()) == OPEN_TO_PAGES.get(app, set())


def test_pages_are_imported_by_pages_only() -> None:
    pages = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in WEBAPP.rglob("*.py") if is_page(path)}
    back = {
        str(path.relative_to(ROOT)): modules_of_webapp(path) & pages for package in (*APPS, *BELOW) for path in files_of(package) if not is_page(path)
    }
    assert {path: used for path, used in back.items() if used} == {}


def test_every_app_has_its_layer() -> None:
    found = {path.parent.name for path in (ROOT / "webapp").glob("*/apps.py")}
    assert found - BELOW == set(APPS)


def test_no_product_module_imports_the_demo() -> None:
    using = [str(path.relative_to(ROOT)) for app in APPS if app != "demo" for path in files_of(app) if "demo" in apps_used(path)]
    assert using == []


CLIENT = sorted((ROOT / "client").rglob("*.py"))


def test_the_client_imports_neither_the_engine_nor_the_web_application() -> None:
    """It is installed alone."""
    assert len(CLIENT) > 3
    assert {str(path): used for path in CLIENT if (used := {"engine", "webapp"} & set(imported(path)))} == {}


FRONTEND = ROOT / "frontend" / "src"
FOLDERS = ("lib", "live", "data", "clock", "views", "pages")
"""The front end's folders; each imports only those before it."""
ALONE = {"push_worker.ts"}
"""In no folder: a separate program, which imports nothing and is imported by nothing."""
FRONTEND_FILES = [path for path in sorted(FRONTEND.rglob("*.ts")) if not path.name.endswith(".d.ts")]
IMPORTED = re.compile(r"""(?:from|import)\s*\(?\s*["'](\.[^"']+)["']""")


def files_imported(path: Path) -> set[str]:
    """The files of the front end that a file imports, also only for types, by their paths in
    `src`."""
    found = {(path.parent / name).resolve() for name in IMPORTED.findall(path.read_text())}
    ways = [(target, target.with_name(f"{target.name}.ts"), target / "index.ts") for target in found]
    return {next(str(way.relative_to(FRONTEND)) for way in each if way.is_file()) for each in ways}


@pytest.fixture(scope="module")
def front_end() -> dict[str, set[str]]:
    """The front end's files -> files that each imports."""
    return {str(path.relative_to(FRONTEND)): files_imported(path) for path in FRONTEND_FILES}


def test_every_file_of_the_front_end_is_in_a_folder_with_a_layer(front_end: dict[str, set[str]]) -> None:
    assert len(front_end) > 100
    assert {name for name in front_end if name.partition("/")[0] not in FOLDERS} == ALONE
    assert set().union(*(front_end[name] for name in ALONE)) == set()
    assert ALONE & set().union(*front_end.values()) == set()


@pytest.mark.parametrize("folder", FOLDERS)
def test_front_end_folders_import_only_lower_layers(folder: str, front_end: dict[str, set[str]]) -> None:
    later = tuple(f"{other}/" for other in FOLDERS[FOLDERS.index(folder) + 1 :])
    back = {name: {one for one in used if one.startswith(later)} for name, used in front_end.items() if later and name.startswith(f"{folder}/")}
    assert {name: used for name, used in back.items() if used} == {}


def test_files_of_the_front_end_do_not_import_each_other_in_a_circle(front_end: dict[str, set[str]]) -> None:
    assert circles(front_end) == {}


def test_no_file_has_more_than_500_lines() -> None:
    """Longer ones have more than one idea (docs/decisions/0056); migrations list tables."""
    python = [
        path
        for package in ("engine", "webapp", "client", "bench", "tests")
        for path in (ROOT / package).rglob("*.py")
        if path.parent.name != "migrations"
    ]
    front_end = [path for folder in ("src", "tests") for path in (ROOT / "frontend" / folder).rglob("*.ts")]
    assert len(python) > 500 and len(front_end) > 100
    lengths = {path: len(path.read_text().splitlines()) for path in python + front_end}
    assert {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > 500} == {}
